# SPDX-License-Identifier: Apache-2.0
"""A server of the tf.data service: the dispatcher, or a worker.

    tf_std_data_server.py --port=5050 --is_dispatcher=true
    tf_std_data_server.py --port=5050 --is_dispatcher=false --dispatcher_address=HOST:5050 --worker_address=HOST:5050
"""

import argparse
import sys

import tensorflow as tf


def parse_arguments(argv):
    def flag(text):
        if text.lower() not in ("true", "false"):
            raise argparse.ArgumentTypeError(f"is {text}, not true or false")
        return text.lower() == "true"

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", help="port to listen on; 0: any", type=int, default=0)
    parser.add_argument("--is_dispatcher", help="whether it is the dispatcher", type=flag, nargs="?", const=True, default=False)
    parser.add_argument("--dispatcher_address", help="a worker needs it", default="")
    parser.add_argument("--worker_address", help="under which others reach this worker; default: localhost with its port", default="")
    parser.add_argument("--work_dir", help="folder for the dispatcher's journal; with it, a dispatcher that starts again knows its jobs", default="")
    args = parser.parse_args(argv)
    if not args.is_dispatcher and not args.dispatcher_address:
        parser.error("a worker needs --dispatcher_address")
    return args


def main(argv):
    args, service = parse_arguments(argv), tf.data.experimental.service
    if args.is_dispatcher:
        server = service.DispatchServer(service.DispatcherConfig(
            port=args.port, protocol="grpc", work_dir=args.work_dir or None, fault_tolerant_mode=bool(args.work_dir)))
        print(f"dispatcher at {server.target}", flush=True)
    else:
        server = service.WorkerServer(service.WorkerConfig(
            port=args.port, protocol="grpc", dispatcher_address=args.dispatcher_address, worker_address=args.worker_address or None))
        print(f"worker of the dispatcher at {args.dispatcher_address}", flush=True)
    server.join()


if __name__ == "__main__":
    main(sys.argv[1:])
