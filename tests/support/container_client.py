"""A program for tests that runs in a container: a session of PyHive that reads statements and prints answers.

Its arguments are the host and the port of a HiveServer2. It prints a line when the session is open. Then each line of
its input is a statement as a JSON string, and each line of its output what came of it: `{"rows": ..}` or
`{"error": ..}`. The session ends with the input.
"""

import json
import sys
from contextlib import closing

from pyhive.exc import Error
from thrift.transport.TTransport import TTransportException

from demo.hive import Endpoint, connect, run

with closing(connect(Endpoint(sys.argv[1], int(sys.argv[2])))) as connection:
    print(json.dumps({"rows": []}), flush=True)
    for line in sys.stdin:
        try:
            answer = {"rows": run(connection, json.loads(line))}
        except (Error, TTransportException, OSError) as error:
            answer = {"error": repr(error)}
        print(json.dumps(answer, default=str), flush=True)
