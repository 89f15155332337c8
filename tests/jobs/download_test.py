#!/usr/bin/env python3
"""jobs/download_dataset.sh against a web server of this machine that serves small archives, cuts connections, ignores
ranges, serves errors and damaged files; with curl and with wget."""
import contextlib
import fcntl
import hashlib
import http.server
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
import zipfile

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / 'jobs/download_dataset.sh'
TOOLS = [tool for tool in ('curl', 'wget') if shutil.which(tool)]
# What the script runs besides the tool that fetches.
PROGRAMS = ('bash awk cat cut df flock grep md5sum mkdir mv rm sleep stat tail unzip env').split()


def archive(name, size):
    """A zip of one folder with one file of bytes that do not compress."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, 'w') as made:
        made.writestr(f'{name}/data.bin', hashlib.shake_128(name.encode()).digest(size))
    return data.getvalue()


FILES = {
    'annotations/annotations_trainval2017.zip': archive('annotations', 50_000),
    'zips/val2017.zip': archive('val2017', 200_000),
    'zips/train2017.zip': archive('train2017', 700_000),
}


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        server = self.server
        path = self.path.lstrip('/')
        server.requests.append((path, self.headers.get('Range')))
        count = sum(1 for asked, _ in server.requests if asked == path)
        data = FILES.get(path, b'')
        match server.behaviour:
            case 'missing':
                return self.send_error(404)
            case 'busy' if count <= 2:
                return self.send_error(503)
            case 'page':
                data = b'<html>sign in first</html>' * 10
            case 'always damaged':
                data = data[:-1] + b'x'
            case 'once damaged' if count == 1:
                data = b'x' + data[1:]
        start = re.fullmatch(r'bytes=(\d+)-', self.headers.get('Range') or '')
        start = int(start[1]) if start and server.behaviour != 'no ranges' else None
        if start is not None and start >= len(data):
            return self.send_error(416)
        self.send_response(200 if start is None else 206)
        if start is not None:
            self.send_header('Content-Range', f'bytes {start}-{len(data) - 1}/{len(data)}')
        body = data[start or 0:]
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        if server.behaviour in ('cuts', 'no ranges') and (count <= 2 or server.behaviour == 'cuts') and len(body) > 100_000:
            body = body[:100_000]  # and the connection ends
        with contextlib.suppress(OSError):
            self.wfile.write(body)


class DownloadTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.server.requests = []
        self.server.behaviour = 'good'
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.coco = self.folder / 'coco'
        self.list(FILES)

    def list(self, files, size=None):
        lines = [f'{path} {size or len(data)} {hashlib.md5(data).hexdigest()} {path.split("/")[-1].split("_")[0].split(".")[0]}'
                 for path, data in files.items()]
        (self.folder / 'archives').write_text('\n'.join(lines))

    def run_script(self, tool, *arguments):
        tools = self.folder / tool
        if not tools.exists():
            tools.mkdir()
            for program in (*PROGRAMS, tool):
                (tools / program).symlink_to(shutil.which(program))
        return subprocess.run(
            ['bash', SCRIPT, *(arguments or [self.coco])], capture_output=True, text=True, timeout=60,
            env={'PATH': str(tools), 'COCO_URL': f'http://127.0.0.1:{self.server.server_port}', 'FETCH_PAUSE': '0.01',
                 'COCO_ARCHIVES': str(self.folder / 'archives')})

    def expect_complete(self, run):
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(sorted(path.name for path in self.coco.iterdir() if path.name[0] != '.'), ['annotations', 'train2017', 'val2017'])
        for data in FILES.values():
            with zipfile.ZipFile(io.BytesIO(data)) as made:
                (name,) = made.namelist()
                self.assertEqual((self.coco / name).read_bytes(), made.read(name))

    def each_tool(self, behaviour):
        self.assertTrue(TOOLS, 'neither curl nor wget here')
        for tool in TOOLS:
            with self.subTest(tool=tool):
                shutil.rmtree(self.coco, ignore_errors=True)
                self.server.requests.clear()
                self.server.behaviour = behaviour
                yield tool

    def test_fetches_verifies_and_unpacks_and_a_second_run_asks_the_server_nothing(self):
        for tool in self.each_tool('good'):
            run = self.run_script(tool)
            self.expect_complete(run)
            self.assertRegex(run.stderr, r"'.*/coco' needs 0\.0 GB more: archives and what they unpack to; [\d.]+ GB are free")
            self.assertEqual(len(self.server.requests), 3)
            self.expect_complete(self.run_script(tool))
            self.assertEqual(len(self.server.requests), 3)

    def test_goes_on_where_a_connection_was_cut(self):
        for tool in self.each_tool('cuts'):
            self.expect_complete(self.run_script(tool))
            asked = [asked for path, asked in self.server.requests if path == 'zips/train2017.zip']
            self.assertEqual(asked[1:3], ['bytes=100000-', 'bytes=200000-'])

    def test_starts_again_where_a_server_cannot_go_on_in_the_middle(self):
        for tool in self.each_tool('no ranges'):
            self.expect_complete(self.run_script(tool))

    def test_a_new_run_goes_on_from_what_an_earlier_one_left(self):
        for tool in self.each_tool('good'):
            self.coco.mkdir()
            (self.coco / 'train2017.zip.part').write_bytes(FILES['zips/train2017.zip'][:123_456])
            (self.coco / '.unpack').mkdir()
            self.expect_complete(self.run_script(tool))
            self.assertIn(('zips/train2017.zip', 'bytes=123456-'), self.server.requests)

    def test_waits_for_a_server_that_is_busy(self):
        for tool in self.each_tool('busy'):
            self.expect_complete(self.run_script(tool))

    def test_fetches_a_damaged_file_once_more(self):
        for tool in self.each_tool('once damaged'):
            run = self.run_script(tool)
            self.expect_complete(run)
            self.assertIn('train2017.zip: damaged on the way, fetching it anew', run.stderr)

    def test_refuses_a_file_that_stays_damaged(self):
        for tool in self.each_tool('always damaged'):
            run = self.run_script(tool)
            self.assertEqual(run.returncode, 1)
            self.assertRegex(run.stderr, r'error: .*annotations_trainval2017\.zip: twice not the file that is expected \(MD5 ')
            self.assertFalse((self.coco / 'annotations').exists())

    def test_gives_up_where_the_server_has_no_such_file(self):
        for tool in self.each_tool('missing'):
            run = self.run_script(tool)
            self.assertEqual(run.returncode, 1)
            self.assertEqual(len(re.findall('error: http', run.stderr)), 1, run.stderr)
            self.assertIn('404', run.stderr)
            self.assertIn('is COCO_URL right?', run.stderr)
            self.assertEqual(len(self.server.requests), 1)

    def test_takes_no_page_for_an_archive(self):
        for tool in self.each_tool('page'):
            self.assertEqual(self.run_script(tool).returncode, 1)
            self.assertFalse((self.coco / 'annotations').exists())

    def test_says_what_space_is_missing_before_it_asks_the_server(self):
        self.list(FILES, size=10**15)
        run = self.run_script(TOOLS[0])
        self.assertEqual(run.returncode, 1)
        self.assertRegex(run.stderr, r'not enough space; \d+\.\d GB are missing')
        self.assertEqual(self.server.requests, [])

    def test_refuses_a_second_run_beside_the_first(self):
        self.coco.mkdir()
        with open(self.coco / '.download.lock', 'w') as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            run = self.run_script(TOOLS[0])
        self.assertEqual(run.returncode, 1)
        self.assertIn("is running", run.stderr)

    def test_wrong_use_is_one_line_and_exit_code_2(self):
        for arguments in (['a', 'b'], ['--help-me']):
            run = self.run_script(TOOLS[0], *arguments)
            self.assertEqual((run.returncode, run.stderr.count('\n')), (2, 1))

    def test_names_the_tools_that_are_missing(self):
        tools = self.folder / 'none'
        tools.mkdir()
        for program in PROGRAMS:
            (tools / program).symlink_to(shutil.which(program))
        run = subprocess.run(['bash', SCRIPT, self.coco], capture_output=True, text=True, env={'PATH': str(tools)})
        self.assertEqual(run.returncode, 1)
        self.assertIn('neither curl nor wget here', run.stderr)

    def test_the_archives_are_those_of_coco_2017(self):
        # Sizes and MD5 as the COCO consortium's storage states them (the MD5 is its ETag).
        text = SCRIPT.read_text()
        for line in ('annotations/annotations_trainval2017.zip 252907541 f4bbac642086de4f52a3fdda2de5fa2c annotations',
                     'zips/val2017.zip 815585330 442b8da7639aecaf257c1dceb8ba8c80 val2017',
                     'zips/train2017.zip 19336861798 cced6f7f71b7629ddf16f17bbcfab6b2 train2017'):
            self.assertIn(line, text)


if __name__ == '__main__':
    if not TOOLS or not shutil.which('unzip'):
        print('skipped: neither curl nor wget, or no unzip')
        sys.exit(77)
    unittest.main()
