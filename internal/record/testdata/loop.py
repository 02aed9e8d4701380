# Calls and arithmetic, for so many seconds of CPU time, in two threads.
import sys
import threading
import time


def leaf(i):
    return (i * 31) % 7


def work():
    until = time.process_time() + float(sys.argv[1])
    while time.process_time() < until:
        sum(leaf(i) for i in range(10000))


second = threading.Thread(target=work)
second.start()
work()
second.join()
