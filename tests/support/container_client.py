"""A program for tests that runs in a container: a session of PyHive that reads statements and prints answers.

Its arguments are the host and the port of a HiveServer2. It prints a line when the session is open. Then each line
of its input is a statement as a JSON string, and each line of its output the result: `{"rows": ..}` or
`{"error": ..}`. The session ends with the input.
"""

import json
import sys
from contextlib import closing

from pyhive.exc import Error
from thrift.transport.TTransport import TTransportException

from demo.hive import Endpoint, connect, run

with closing(connect(Endpoint(sys.argv[1], int(sys.argv[2])))) as connection:
    sys.stdout.write(json.dumps({"rows": []}) + "\n")
    sys.stdout.flush()
    for line in sys.stdin:
        try:
            answer: dict[str, object] = {"rows": run(connection, json.loads(line))}
        except (Error, TTransportException, OSError) as error:
            answer = {"error": repr(error)}
        sys.stdout.write(json.dumps(answer, default=str) + "\n")
        sys.stdout.flush()
