#!/usr/bin/env python3
"""Checks tests/user_reports.md: every file that it names for a case has a test, or a case of a test, with the number of
the case in its name (T1-01 as T1_01, U4 as U4), and every number in the name of a test stands in the table."""
import pathlib
import re
import sys

TESTS = pathlib.Path(__file__).parent
# A number in the name of a test (TEST(Suite, T1_01_...), in Python test_T1_01_...) or of a case of a parameterised test
# ("T1_01_...", "U4_...").
TEST_NAME = re.compile(r'^(?:TEST(?:_[FP])?\(\w+, (?=\w+\))|    def (?=test_))(\w+)', re.M)
CASE_NAME = re.compile(r'"((?:T\d_\d\d|U\d+_)\w*)"')


def numbers_in(path):
    text = path.read_text()
    names = TEST_NAME.findall(text) + CASE_NAME.findall(text)
    numbers = [number for name in names for number in re.findall(r'(?:^|_)(T\d_\d\d|U\d+)(?=_|$)', name)]
    return {number.replace('_', '-') for number in numbers}


def main():
    faults = []
    rows = re.findall(r'^\| (T\d-\d\d|U\d+) \| .+? \| (.+) \|$', (TESTS / 'user_reports.md').read_text(), re.M)
    cases = [case for case, _ in rows]
    faults += [f'{case}: stands twice in the table' for case in set(cases) if cases.count(case) > 1]
    for case, answer in rows:
        files = re.findall(r'`([\w/]+_test\.(?:cpp|py))`', answer)
        if not files and not answer.startswith('no test: '):
            faults.append(f'{case}: neither a test nor a reason')
        for file in files:
            if not (TESTS / file).is_file():
                faults.append(f'{case}: no file {file}')
            elif case not in numbers_in(TESTS / file):
                faults.append(f'{case}: no test in {file} has it in its name')
    for path in sorted([*TESTS.rglob('*_test.cpp'), *TESTS.rglob('*_test.py')]):
        faults += [f'{case}: in {path.relative_to(TESTS)}, but not in the table' for case in numbers_in(path) - set(cases)]
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f'{len(rows)} cases, {len(faults)} faults')
    return 1 if faults or len(rows) == 0 else 0


sys.exit(main())
