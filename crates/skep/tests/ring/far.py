"""A longer way: what comes in at one tunnel goes out at another, so many milliseconds later. Ends with its standard input.

far.py NAME-IN NAME-OUT MILLISECONDS
"""
import collections
import fcntl
import os
import select
import struct
import sys
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000


def tunnel(name):
    file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(file, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    return file


near_end, far_end = tunnel(sys.argv[1]), tunnel(sys.argv[2])
delay = float(sys.argv[3]) / 1000
print("ready", flush=True)
under_way = collections.deque()
while True:
    left = max(0, under_way[0][0] - time.monotonic()) if under_way else None
    ready = select.select([near_end, 0], [], [], left)[0]
    if 0 in ready and not os.read(0, 1):
        break
    if near_end in ready:
        under_way.append((time.monotonic() + delay, os.read(near_end, 65536)))
    while under_way and under_way[0][0] <= time.monotonic():
        try:
            os.write(far_end, under_way.popleft()[1])
        except OSError:
            pass  # lost on the way
