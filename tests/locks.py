"""The lock of the interpreter while something runs."""

import sys
import threading
import time


def runs_without_lock(call, is_done, undo, tries=20):
    """Whether `call` releases the interpreter's lock and needs it nowhere until its work is done.

    Another thread gets the lock when it is released, and keeps it for a second, or until it has seen the work done: nobody else is given it meanwhile, as the
    interval after which a thread must let others run is longer. `undo` makes the work undone for the next try, where the other thread woke up amiss.
    """
    interval = sys.getswitchinterval()
    for _ in range(tries):
        undo()
        returned, seen = [], []
        go = threading.Lock()
        go.acquire()

        def watch(go=go, returned=returned, seen=seen):
            go.acquire()
            deadline = time.monotonic() + 1
            undone = not returned and not is_done()
            while undone and not seen and time.monotonic() < deadline:
                seen += [True] * is_done()

        thread = threading.Thread(target=watch)
        thread.start()
        time.sleep(0.01)  # until it waits
        sys.setswitchinterval(1000)
        try:
            go.release()
            call()
            returned.append(True)
        finally:
            sys.setswitchinterval(interval)
        thread.join()
        if seen:
            return True
    return False
