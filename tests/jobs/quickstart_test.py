#!/usr/bin/env python3
"""jobs/quickstart.sh line by line in a copy of the scripts, with programs that do nothing but what the script looks at,
under every awk of this machine: what it says, how many epochs it trains, and that it leaves no file where none belongs."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
AWKS = [name for name in ('mawk', 'gawk', 'original-awk') if shutil.which(name)] + (['busybox awk'] if shutil.which('busybox') else [])

PROGRAMS = {
    'jobs/setup.sh': 'exit 0',
    'tools/mpirun': 'shift 2; exec "$@"',
    'build/default/bin/ssd_preprocess': 'exit 0',
    'build/default/bin/ssd_infer': 'exit 0',
    'build/default/bin/ssd_train': r'''
        while [ $# -gt 0 ]; do
          case $1 in
            --json-summary) summary=$2 ;;
            --epochs) epochs=$2 ;;
            --save) models=$2 ;;
            --mode) mode=$2 ;;
          esac
          all="$all $1"; shift
        done
        if [ "$mode" = benchmark-training ]; then
          printf 'DLLL {"data":{"med_img/sec":%s}}\n' "$RATE" >"$summary"
        else
          mkdir -p "$models"; : >"$models/epoch_$((epochs - 1)).pt"; : >"$summary"
          printf '%s\n' "$all" >"$TRAINED"
        fi''',
}


class QuickstartTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.checkout = self.folder / 'checkout'
        shutil.copytree(ROOT / 'jobs', self.checkout / 'jobs')
        names = self.checkout / 'tests/data/bccd/ImageSets/Main/test.txt'
        names.parent.mkdir(parents=True)
        shutil.copy(ROOT / names.relative_to(self.checkout), names)
        for name, text in PROGRAMS.items():
            path = (self.folder if name.startswith('tools/') else self.checkout) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f'#!/bin/sh\n{text}\n')
            path.chmod(0o755)
        self.before = self.files()

    def files(self):
        return {path.relative_to(self.checkout) for path in self.checkout.rglob('*')}

    def quickstart(self, awk, rate, **environment):
        tool = self.folder / 'tools/awk'
        tool.write_text(f'#!/bin/sh\nexec {awk} "$@"\n')
        tool.chmod(0o755)
        trained = self.folder / 'trained'
        trained.unlink(missing_ok=True)
        base = {name: value for name, value in os.environ.items() if name not in ('QUICKSTART_EPOCHS', 'RESULTS', 'SEED')}
        run = subprocess.run([self.checkout / 'jobs/quickstart.sh'], capture_output=True, text=True, cwd=self.folder,
                             env={**base, 'PATH': f'{tool.parent}:{base["PATH"]}', 'RATE': rate, 'TRAINED': str(trained), **environment})
        extra = {str(path) for path in self.files() - self.before if not str(path).startswith('build/quickstart')}
        self.assertEqual(extra, set(), 'left in the checkout')
        self.assertEqual({path.name for path in self.folder.iterdir()} - {'trained'}, {'checkout', 'tools'})
        said = [line for line in run.stderr.splitlines() if 'images/s' in line]
        return run, said, trained.read_text().split() if trained.exists() else []

    def each_awk(self):
        self.assertTrue(AWKS, 'no awk here')
        for awk in AWKS:
            with self.subTest(awk=awk):
                yield awk

    def expect(self, result, said, epochs):
        run, lines, words = result
        self.assertEqual((run.returncode, lines), (0, [f'quickstart: {said}']), run.stderr)
        self.assertEqual(words[words.index('--epochs') + 1], str(epochs))

    def test_a_fast_machine_trains_all_epochs_and_says_first_how_long(self):
        for awk in self.each_awk():  # 39 * 205 / 25.34 = 315.5 s
            self.expect(self.quickstart(awk, '25.34'), '25.34 images/s here: training 39 epochs takes about 6 minutes', 39)

    def test_U16_a_slow_machine_trains_as_many_epochs_as_fit_and_says_how_to_have_all(self):
        for awk in self.each_awk():  # 11 * 205 / 2.96 = 762 s, 12 epochs 831 s, all 2701 s
            self.expect(self.quickstart(awk, '2.96'),
                        '2.96 images/s here: training 11 epochs takes about 13 minutes, so that it ends soon; all 39 find more '
                        'and would take about 46 minutes: QUICKSTART_EPOCHS=39', 11)

    def test_the_slowest_machine_trains_one_epoch(self):
        for awk in self.each_awk():
            self.expect(self.quickstart(awk, '.1'),
                        '0.1 images/s here: training 1 epoch takes about 35 minutes, so that it ends soon; all 39 find more '
                        'and would take about 1333 minutes: QUICKSTART_EPOCHS=39', 1)

    def test_the_epochs_asked_for_are_trained_whatever_they_take(self):
        for awk in self.each_awk():
            self.expect(self.quickstart(awk, '2.96', QUICKSTART_EPOCHS='39'), '2.96 images/s here: training 39 epochs takes about 46 minutes', 39)
            self.expect(self.quickstart(awk, '205', QUICKSTART_EPOCHS='1'), '205 images/s here: training 1 epoch takes about 1 minute', 1)

    def test_milestones_and_evaluations_lie_within_the_epochs_and_come_once(self):
        for epochs in (1, 2, 3, 5, 12, 39, 78):
            _, _, words = self.quickstart(AWKS[0], '9', QUICKSTART_EPOCHS=str(epochs))
            values = {}
            for word in words:
                if word.startswith('--'):
                    values[word] = of_option = []
                else:
                    of_option.append(word)
            evaluation = values['--evaluation']
            self.assertEqual(evaluation.pop(), 'last')
            for numbers in (values['--multistep'], evaluation):
                numbers = [int(number) for number in numbers]
                self.assertEqual(numbers, sorted(set(numbers)))
                self.assertTrue(all(0 < number <= max(1, epochs - 1) for number in numbers), (epochs, numbers))

    def test_U16_no_awk_program_of_a_script_compares_where_awk_reads_a_redirection(self):
        # "print a > b" writes to a file named b; "print (a > b)" compares.
        programs = [program for folder in ('jobs', 'slurm', 'singularity', 'tests') for path in sorted((ROOT / folder).rglob('*'))
                    if path.suffix in ('.sh', '.sbatch', '.def') for program in re.findall(r"\bawk\b[^'|;]*'([^']*)'", path.read_text())]
        self.assertGreater(len(programs), 5)
        for program in programs:
            bare = re.sub(r'"(\\.|[^"])*"', '""', program)
            while bare != (bare := re.sub(r'\([^()]*\)', '', bare)):
                pass
            self.assertNotRegex(bare, r'\bprintf?\b[^;}\n]*>', program)

    def test_no_rate_is_an_error(self):
        for rate in ('0', '0.0', ''):
            run, said, words = self.quickstart(AWKS[0], rate)
            self.assertEqual((run.returncode, said, words), (1, [], []))
            self.assertIn('error: the benchmark has measured no rate', run.stderr)

    def test_wrong_epochs_are_one_line_and_exit_code_2(self):
        for epochs in ('0', '-1', 'x', '1.5'):
            run, _, words = self.quickstart(AWKS[0], '9', QUICKSTART_EPOCHS=epochs)
            self.assertEqual((run.returncode, run.stderr.count('\n'), words), (2, 1, []))


if __name__ == '__main__':
    unittest.main()
