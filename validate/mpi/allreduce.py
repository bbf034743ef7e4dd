"""All-reduce over MPI in host memory, every element of every iteration checked.

Prints one JSON object a line: first {"ranks", "hosts", "mpi"}, then one a size.
Times are microseconds, of the slowest rank in each iteration. algbw and busbw are
bytes per second from the average time; busbw = algbw * 2 * (ranks - 1) / ranks.
"""
import array
import json
import sys

# RHEL's mpi4py of Open MPI is below a folder that environment-modules adds (mpi4py.spec).
sys.path.append("/usr/lib64/python%d.%d/site-packages/openmpi" % sys.version_info[:2])

from mpi4py import MPI

PERIOD = 97  # a prime, so that shifted data never looks right


def pattern(count, scale, shift):
    """count 32-bit integers: ((i + shift) mod PERIOD + 1) * scale."""
    one = array.array("i", [((i + shift) % PERIOD + 1) * scale for i in range(PERIOD)])
    return (one * (count // PERIOD + 1))[:count]


def wrong_elements(got, want):
    if got.tobytes() == want.tobytes():
        return 0
    return sum(1 for a, b in zip(got, want) if a != b)


def measure(comm, size, iterations, warmups):
    count = max(1, size // 4)
    rank, ranks = comm.Get_rank(), comm.Get_size()
    scale = ranks * (ranks + 1) // 2  # the sum of all ranks' rank + 1
    times, wrong = [], 0
    for i in range(-warmups, iterations):
        send = pattern(count, rank + 1, i + warmups)
        want = pattern(count, scale, i + warmups)
        got = array.array("i", bytes(4 * count))
        comm.Barrier()
        start = MPI.Wtime()
        comm.Allreduce([send, MPI.INT], [got, MPI.INT], op=MPI.SUM)
        took = comm.allreduce(MPI.Wtime() - start, op=MPI.MAX)
        wrong += wrong_elements(got, want)
        if i >= 0:
            times.append(took)
    return 4 * count, times, comm.gather(wrong, root=0)


def main():
    iterations, warmups = int(sys.argv[1]), int(sys.argv[2])
    sizes = [int(a) for a in sys.argv[3:]]
    comm = MPI.COMM_WORLD
    ranks = comm.Get_size()
    hosts = comm.gather(MPI.Get_processor_name(), root=0)
    if comm.Get_rank() == 0:
        print(json.dumps({"ranks": ranks, "hosts": hosts, "mpi": MPI.Get_library_version().split("\n")[0].rstrip("\0")}), flush=True)
    for size in sizes:
        size, times, wrong = measure(comm, size, iterations, warmups)
        if comm.Get_rank() != 0:
            continue
        average = sum(times) / len(times)
        algbw = size / average
        print(json.dumps({
            "size": size, "ranks": ranks, "iterations": len(times),
            "time_us": {"min": min(times) * 1e6, "avg": average * 1e6, "max": max(times) * 1e6},
            "algbw": algbw, "busbw": algbw * 2 * (ranks - 1) / ranks,
            "wrong": sum(wrong), "wrong_by_rank": wrong,
        }), flush=True)


if __name__ == "__main__":
    main()
