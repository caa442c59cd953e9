"""What memento_client finds through a TimeGate: memento.py TIMEGATE URL

Reads dates from standard input, one a line; prints one JSON object a line, in the same order. The client asks the live web for the URL first,
as its makers mean it: HTTP_PROXY says where that is.
"""

import json
import sys
from datetime import datetime

from memento_client import MementoClient

gate, url = sys.argv[1:]
client = MementoClient(timegate_uri=gate)
for line in sys.stdin:
    info = client.get_memento_info(url, datetime.fromisoformat(line.strip()))
    closest = info.get("mementos", {}).get("closest", {})
    memento = (closest.get("uri") or [None])[0]
    told = {"original": info["original_uri"], "gate": info["timegate_uri"], "memento": memento}
    if memento:
        told["datetime"] = closest["datetime"].isoformat()
        told["status"] = closest["http_status_code"]
        # From the memento alone, the client finds its way back.
        told["found again"] = client.get_original_uri(memento)
        told["is memento"] = client.is_memento(memento)
        told["body"] = client.session.get(memento).text
    print(json.dumps(told))
