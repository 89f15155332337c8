#!/usr/bin/env python3
"""Training and inference of ssd_train against PyTorch, on one core for each rank, interleaved: medians of the rounds and
their ratio. The peer is a script that prints one JSON line with train_images_per_s, forward_cpu_s_per_image and
decode_nms_cpu_s_per_image, and takes --backbone, --batch, --bf16, --channels-last, --ranks, --steps and --warmup.

    training_bench.py --bin build/default/bin --data SHARDS --python PYTHON --peer train_peer.py [--rounds 5]
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

MPI = {'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1', 'OMPI_MCA_mpi_yield_when_idle': '1',
       'OMPI_MCA_rmaps_base_oversubscribe': '1'}
CASES = {  # name: backbone, batch per rank, half precision, ranks
    'resnet50-fp32': ('resnet50', 8, False, 1),
    'resnet50-bf16': ('resnet50', 8, True, 1),
    'resnet18-bf16': ('resnet18', 8, True, 1),
    'resnet50-bf16-2ranks': ('resnet50', 8, True, 2),
    'resnet18-bf16-2ranks': ('resnet18', 8, True, 2),
}


def own_rate(args, case, mode):
    backbone, batch, half, ranks = CASES[case]
    with tempfile.NamedTemporaryFile() as log:
        command = ['mpirun', '-np', str(ranks), '--bind-to', 'core', str(args.bin / 'ssd_train'), '--data', args.data, '--device', 'cpu',
                   '--backbone', backbone, '--mode', mode, '--batch-size', str(batch), '--eval-batch-size', str(batch),
                   '--benchmark-warmup', '2', '--benchmark-iterations', str(args.steps), '--warmup', '1000', '--seed', '1',
                   '--json-summary', log.name] + (['--fp16'] if half else [])
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **MPI})
        line = pathlib.Path(log.name).read_text().splitlines()[-1]
        return json.loads(line.removeprefix('DLLL '))['data']['med_img/sec']


def peer_figures(args, case, channels_last):
    backbone, batch, half, ranks = CASES[case]
    pin = ['taskset', '-c', '0'] if ranks == 1 else []  # with more ranks the peer pins each itself
    command = pin + [args.python, args.peer, '--backbone', backbone, '--batch', str(batch), '--ranks', str(ranks),
               '--steps', str(args.steps), '--warmup', '2'] + (['--bf16'] if half else []) + (['--channels-last'] if channels_last else [])
    out = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, 'OMP_NUM_THREADS': '1'}).stdout
    return json.loads(out.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', type=pathlib.Path, required=True)
    parser.add_argument('--data', required=True)
    parser.add_argument('--python', default='python3')
    parser.add_argument('--peer', required=True)
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--steps', type=int, default=4)
    parser.add_argument('--cases', nargs='+', default=list(CASES), choices=list(CASES))
    args = parser.parse_args()
    print(f'{"case":24} {"what":10} {"ours":>8} {"peer":>8} {"ratio":>6}   img/s, medians of {args.rounds} rounds')
    for case in args.cases:
        ours, peers, own_inference, peer_inference = [], [], [], []
        for _ in range(args.rounds):
            ours.append(own_rate(args, case, 'benchmark-training'))
            # The peer in the layout that is faster for it: channels last in half precision, the plain one in FP32.
            figures = peer_figures(args, case, CASES[case][2])
            peers.append(figures['train_images_per_s'])
            if CASES[case][3] == 1:
                own_inference.append(own_rate(args, case, 'benchmark-inference'))
                peer_inference.append(figures['inference_images_per_s'])
        for what, own, peer in (('training', ours, peers), ('inference', own_inference, peer_inference)):
            if own:
                a, b = statistics.median(own), statistics.median(peer)
                print(f'{case:24} {what:10} {a:8.2f} {b:8.2f} {a / b:6.2f}   {sorted(own)} {sorted(peer)}', flush=True)


if __name__ == '__main__':
    main()
