#!/usr/bin/env python3
"""Checks README.md against the programs of a build: every command of its blocks names files and programs that exist and
options that they take, every option it mentions exists, --help and --version work.
SSD_TEST_LONG=1 also runs jobs/quickstart.sh with one epoch.
    readme_test.py BIN      BIN: the folder of the programs"""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Options of other programs that README names.
FOREIGN_OPTIONS = {'--install', '--prefix', '--mpi', '--bind-to', '--map-by',
                   # sbatch, scancel
                   '--partition', '--account', '--time', '--nodes', '--ntasks-per-node', '--gres', '--gpus-per-task', '--array',
                   '--dependency', '--signal', '--batch',
                   # apptainer, lfs
                   '--nv', '--bind', '--cleanenv', '--contain', '--stripe-count', '--stripe-size'}
faults = []


def check(condition, message):
    if not condition:
        faults.append(message)


def help_of(program):
    asked = subprocess.run([program, '--help'], capture_output=True, text=True)
    check(asked.returncode == 0 and asked.stdout and not asked.stderr, f'{program.name} --help: exit code {asked.returncode}, {asked.stderr}')
    version = subprocess.run([program, '--version'], capture_output=True, text=True)
    check(version.returncode == 0 and re.match(rf'{program.name} \d+\.\d+\.\d+', version.stdout),
          f'{program.name} --version: {version.stdout}{version.stderr}')
    return asked.stdout


def has_option(text, option):
    return re.search(rf'(?<![\w-]){re.escape(option)}(?![\w-])', text) is not None


def check_command(line, helps):
    words = shlex.split(line, comments=True)
    while words and re.match(r'^[A-Z_]+=', words[0]):
        words.pop(0)
    program = None  # whose options follow
    for word in words:
        name = word.split('/')[-1]
        if name in helps or name.startswith('ssd_') and '.' not in name:
            program = name
            check(name in helps, f'{line}: no program {name} is built')
        elif name.endswith('.sbatch'):
            check((ROOT / word).is_file(), f'{line}: no file {word}')
            program = 'ssd_train'
        elif name.endswith('.sh'):
            check(os.access(ROOT / word, os.X_OK), f'{line}: no script {word}')
        elif word.startswith('--') and program is not None:
            check(has_option(helps.get(program, ''), word.split('=')[0]), f'{line}: {program} has no option {word}')
    check(words, f'{line}: no command')


def check_quickstart():
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run([ROOT / 'jobs/quickstart.sh'], env={**os.environ, 'QUICKSTART_EPOCHS': '1', 'RESULTS': folder})
        check(run.returncode == 0, f'jobs/quickstart.sh: exit code {run.returncode}')
        for name in ('shards/train.manifest.json', 'models/epoch_0.pt', 'log.jsonl', 'detections.json'):
            check((pathlib.Path(folder) / name).exists(), f'jobs/quickstart.sh left no {name}')


def main():
    helps = {program.name: help_of(program) for program in sorted(pathlib.Path(sys.argv[1]).iterdir()) if os.access(program, os.X_OK)}
    readme = (ROOT / 'README.md').read_text()
    blocks = re.findall(r'^```bash\n(.*?)^```', readme, re.M | re.S)
    commands = [line for block in blocks for line in block.replace('\\\n', ' ').splitlines() if line.strip()]
    for line in commands:
        check_command(line, helps)
    prose = re.sub(r'^```.*?^```', '', readme, flags=re.M | re.S)
    options = {option for code in re.findall(r'`([^`]+)`', prose) for option in re.findall(r'(?<![\w-])--[a-z][\w-]*', code)}
    for option in sorted(options - FOREIGN_OPTIONS):
        check(any(has_option(text, option) for text in helps.values()), f'README names {option}, which no program has')
    if os.environ.get('SSD_TEST_LONG'):
        check_quickstart()
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f'{len(commands)} commands, {len(options)} options, {len(helps)} programs, {len(faults)} faults')
    return 1 if faults or not commands or not options or not helps else 0


sys.exit(main())
