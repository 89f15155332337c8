#!/usr/bin/env python3
"""jobs/SSD300_*.sh: what each of the reference's examples becomes, with programs that print their arguments."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

JOBS = pathlib.Path(__file__).resolve().parents[2] / 'jobs'
FP16 = '--fp16 --batch-size 64 --warmup 300'
FP32 = '--batch-size 32 --warmup 300 --data-layout channels_first'
# The reference's examples/: ranks, and its options (batch size, warmup, learning rate, layout) in this program's words.
EXPECTED = {
    'SSD300_FP16_1GPU': (1, FP16), 'SSD300_FP16_4GPU': (4, FP16), 'SSD300_FP16_8GPU': (8, FP16),
    'SSD300_FP32_1GPU': (1, FP32), 'SSD300_FP32_4GPU': (4, FP32), 'SSD300_FP32_8GPU': (8, FP32),
    'SSD300_A100_FP16_1GPU': (1, '--fp16 --batch-size 256 --warmup 300'),
    'SSD300_A100_FP16_4GPU': (4, '--fp16 --batch-size 256 --warmup 1200 --learning-rate 2.7e-3'),
    'SSD300_A100_FP16_8GPU': (8, '--fp16 --batch-size 128 --warmup 1200 --learning-rate 2.7e-3'),
    'SSD300_A100_FP32_8GPU': (8, '--batch-size 128 --warmup 1200 --learning-rate 2.7e-3'),
    'SSD300_FP16_EVAL': (1, '--fp16 --eval-batch-size 32 --mode evaluation --checkpoint epoch_9.pt'),
    'SSD300_FP32_EVAL': (1, '--eval-batch-size 32 --mode evaluation --checkpoint epoch_9.pt'),
    'SSD300_FP16_INFERENCE_BENCHMARK': (1, '--fp16 --eval-batch-size 64 --mode benchmark-inference'),
    'SSD300_FP32_INFERENCE_BENCHMARK': (1, '--eval-batch-size 32 --mode benchmark-inference'),
}


class ExamplesTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        for name in ('tools/mpirun', 'project/build/default/bin/ssd_train', 'installed/bin/ssd_train', 'bin/ssd_train'):
            path = self.folder / name
            path.parent.mkdir(parents=True)
            path.write_text('#!/bin/sh\necho "$@"\n')
            path.chmod(0o755)

    def run_script(self, name, *arguments):
        return subprocess.run([JOBS / f'{name}.sh', *arguments], capture_output=True, text=True, cwd=self.folder,
                              env={**os.environ, 'PATH': f'{self.folder}/tools:{os.environ["PATH"]}'})

    def test_every_example_has_a_wrapper_and_every_wrapper_an_example(self):
        self.assertEqual({path.stem for path in JOBS.glob('SSD300_*.sh')}, set(EXPECTED))

    def test_wrappers_start_what_the_examples_start_and_the_users_options_come_last(self):
        for name, (ranks, options) in EXPECTED.items():
            with self.subTest(name):
                arguments = ['project', '/shards'] + (['epoch_9.pt'] if name.endswith('EVAL') else [])
                run = self.run_script(name, *arguments, '--save', 'my models')
                self.assertEqual((run.returncode, run.stderr), (0, ''))
                self.assertEqual(run.stdout, f'-np {ranks} project/build/default/bin/ssd_train --data /shards '
                                             f'{options} --save my models\n')

    def test_the_program_is_found_in_a_build_in_an_installed_tree_and_in_its_folder(self):
        for project, program in (('project', 'project/build/default/bin/ssd_train'), ('installed', 'installed/bin/ssd_train'), ('bin', 'bin/ssd_train')):
            self.assertIn(f' {program} ', self.run_script('SSD300_FP16_1GPU', project, '/shards').stdout)

    def test_wrong_use_is_one_line_and_exit_code_2(self):
        for name, arguments in (('SSD300_FP16_8GPU', ['project']), ('SSD300_FP16_EVAL', ['project', '/shards']),
                                ('SSD300_FP16_8GPU', ['/nowhere', '/shards']), ('local_mpi', ['2']), ('local_mpi', ['0', 'true']),
                                ('local_mpi', ['2', 'no_such_program'])):
            with self.subTest(name=name, arguments=arguments):
                run = self.run_script(name, *arguments)
                self.assertEqual((run.returncode, run.stdout, run.stderr.count('\n')), (2, '', 1))
                self.assertIn('error: ', run.stderr)


if __name__ == '__main__':
    unittest.main()
