#!/usr/bin/env python3
"""singularity/ssd.def: header and sections as Apptainer's parser takes them, scripts that a shell takes, programs and files
that exist; singularity/build.sh with a stand-in for apptainer."""
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
KNOWN = {'pre', 'setup', 'files', 'arguments', 'post', 'environment', 'runscript', 'startscript', 'test', 'labels', 'help'}
SCRIPTS = ('post', 'environment', 'runscript', 'test')


def parse(text):
    """The header's keywords, and the sections' lines. A section begins with %name at the start of a line."""
    header, sections, lines = {}, {}, None
    for line in text.splitlines():
        if found := re.match(r'%(\w+)\s*(.*)$', line):
            assert found[1] in KNOWN, f'unknown section {line}'
            assert found[1] not in sections, f'section {line} stands twice'
            assert not found[2], f'{line}: no arguments are used here'
            lines = sections[found[1]] = []
        elif lines is not None:
            lines.append(line)
        elif line.strip() and not line.startswith('#'):
            key, separator, value = line.partition(':')
            assert separator and value.strip(), f'header line {line}'
            header[key.strip().lower()] = value.strip()
    return header, sections


HEADER, SECTIONS = parse((ROOT / 'singularity/ssd.def').read_text())


def script(name):
    return '\n'.join(SECTIONS[name]) + '\n'


class DefinitionTest(unittest.TestCase):
    def test_the_base_is_a_pinned_image_with_the_cuda_toolkit_that_the_build_wants(self):
        self.assertEqual(HEADER['bootstrap'], 'docker')
        wanted = re.search(r'find_package\(CUDAToolkit ([\d.]+)', (ROOT / 'cmake/SsdDependencies.cmake').read_text())[1]
        self.assertRegex(HEADER['from'], rf'^nvidia/cuda:{re.escape(wanted)}\.\d+-cudnn-devel-ubuntu24\.04$')

    def test_all_sections_are_there(self):
        self.assertEqual(set(SECTIONS), {'files', 'labels', 'post', 'environment', 'runscript', 'test', 'help'})

    def test_labels_are_a_name_and_a_value(self):
        for line in filter(None, SECTIONS['labels']):
            self.assertRegex(line, r'^    [\w.]+ \S')

    def test_a_shell_takes_the_scripts(self):
        for name in SCRIPTS:
            with self.subTest(name):
                subprocess.run(['sh', '-n'], input=script(name), text=True, check=True)
                if shutil.which('shellcheck'):
                    subprocess.run(['shellcheck', '--shell=sh', '--exclude=SC2012', '-'], input=script(name), text=True, check=True)

    def test_T7_04_the_environment_finds_the_programs_in_a_shell_that_is_no_login_shell(self):
        run = subprocess.run(['sh', '-c', script('environment') + 'echo "$PATH $LC_ALL"'], capture_output=True, text=True,
                             env={'PATH': '/bin'}, check=True)
        self.assertEqual(run.stdout, '/opt/ssd/bin:/bin C.UTF-8\n')

    def test_the_test_runs_every_program_that_is_installed(self):
        built = set()
        for path in (*(ROOT / 'src').rglob('CMakeLists.txt'), ROOT / 'preprocess/CMakeLists.txt'):
            built |= set(re.findall(r'^ssd_add_program\((\w+)', path.read_text(), re.M))
        run = set(re.search(r'for program in (.*); do', script('test'))[1].split())
        self.assertEqual(run, built)

    def test_the_runscript_runs_what_it_is_given_and_else_says_how_it_is_used(self):
        run = subprocess.run(['sh', '-c', script('runscript'), 'sh', 'echo', 'a b', 'c'], capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stdout), (0, 'a b c\n'))
        run = subprocess.run(['sh', '-c', script('runscript'), 'sh'], capture_output=True, text=True)
        self.assertEqual(run.returncode, 2)
        self.assertIn('usage: ', run.stderr)

    def test_the_post_script_calls_what_the_repository_has(self):
        self.assertIn('jobs/setup.sh --programs\n', script('post'))
        self.assertTrue(os.access(ROOT / 'jobs/setup.sh', os.X_OK))
        self.assertIn('--programs)', (ROOT / 'jobs/setup.sh').read_text())


class BuildTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.clone = self.folder / 'clone'
        (self.clone / 'singularity').mkdir(parents=True)
        for name in ('build.sh', 'ssd.def'):
            shutil.copy(ROOT / 'singularity' / name, self.clone / 'singularity')
        git = ['git', '-c', 'user.name=a', '-c', 'user.email=a@b', '-C', str(self.clone)]
        for command in (['init', '-q'], ['add', '-A'], ['commit', '-q', '-m', 'a']):
            subprocess.run([*git, *command], check=True)
        self.tools = self.folder / 'tools'
        self.tools.mkdir()

    def build(self, *arguments):
        return subprocess.run([self.clone / 'singularity/build.sh', *arguments], capture_output=True, text=True,
                              env={**os.environ, 'PATH': f'{self.tools}:{os.environ["PATH"]}'})

    def test_packs_the_commit_where_the_definition_looks_for_it(self):
        (self.tools / 'apptainer').write_text('#!/bin/sh\necho "$@"\n')
        (self.tools / 'apptainer').chmod(0o755)
        run = self.build('out/image.sif', '--fakeroot')
        self.assertEqual((run.returncode, run.stdout), (0, 'build --fakeroot out/image.sif singularity/ssd.def\n'), run.stderr)
        (source, _), = [line.split() for line in SECTIONS['files'] if line.strip()]
        with tarfile.open(self.clone / source) as archive:
            self.assertIn('singularity/ssd.def', archive.getnames())

    @unittest.skipIf(shutil.which('apptainer') or shutil.which('singularity'), 'apptainer is here')
    def test_says_that_apptainer_is_missing(self):
        run = self.build()
        self.assertEqual(run.returncode, 1)
        self.assertIn('error: neither apptainer nor singularity here', run.stderr)


if __name__ == '__main__':
    unittest.main()
