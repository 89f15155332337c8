#!/usr/bin/env python3
"""Milliseconds of torch.distributed's gloo allreduce in float32, the peer of ssd_comm_bench: medians.
    gloo_allreduce.py ELEMENTS [RANKS] [ROUNDS]"""
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank, elements, ranks, rounds):
    os.sched_setaffinity(0, {rank % os.cpu_count()})
    torch.set_num_threads(1)
    dist.init_process_group('gloo', init_method='tcp://127.0.0.1:29517', rank=rank, world_size=ranks)
    gradients = torch.ones(elements)
    times = []
    for _ in range(rounds + 2):
        dist.barrier()
        start = time.perf_counter()
        dist.all_reduce(gradients)
        times.append(1000 * (time.perf_counter() - start))
    if rank == 0:
        print(f'gloo, {ranks} ranks, {elements} float32: median {statistics.median(times[2:]):.1f} ms, min {min(times[2:]):.1f} ms')
    dist.destroy_process_group()


if __name__ == '__main__':
    numbers = [int(word) for word in sys.argv[1:]]
    count, ranks, rounds = numbers + [2, 5][len(numbers) - 1:]
    mp.spawn(work, (count, ranks, rounds), ranks)
