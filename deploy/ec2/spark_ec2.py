#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Spark Standalone cluster with TensorFlow and tfos on Amazon EC2, by the commands aws, ssh and scp.

    spark_ec2.py -k KEY_PAIR -i KEY.pem -s WORKERS --wheel dist/tfos-*.whl launch NAME
    spark_ec2.py get-master | login | stop | start | reboot-slaves | destroy NAME

The instances bear the tag tfos-cluster=NAME, and are found by it. `destroy` terminates them; what is on their disks is lost.
"""

import argparse
import json
import shlex
import subprocess
import sys
import time
from pathlib import Path

STANDALONE = Path(__file__).resolve().parents[1] / "standalone"
UBUNTU = "resolve:ssm:/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id"
SSH_TRIES = 60


class Cluster:
    """The instances of a cluster, and what is done to them."""

    def __init__(self, options):
        self.options, self.name = options, options.cluster_name

    def aws(self, *words):
        """What a command of aws answers, as JSON."""
        command = ["aws", *(["--region", self.options.region] if self.options.region else []), "--output", "json", "ec2", *words]
        result = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if result.returncode != 0:
            sys.exit(f"{shlex.join(command)}: failed with {result.returncode}")
        return json.loads(result.stdout or "null")

    def instances(self, role=None):
        """The instances that are not terminated, the master first."""
        filters = [f"Name=tag:tfos-cluster,Values={self.name}", "Name=instance-state-name,Values=pending,running,stopping,stopped"]
        if role:
            filters.append(f"Name=tag:tfos-role,Values={role}")
        answer = self.aws("describe-instances", "--filters", *filters)
        found = [instance for reservation in answer["Reservations"] for instance in reservation["Instances"]]
        return sorted(found, key=lambda one: (role_of(one) != "master", one["InstanceId"]))

    def need(self, role=None):
        found = self.instances(role)
        if not found:
            sys.exit(f"there is no {role or 'instance'} of a cluster named {self.name}" + (f" in {self.options.region}" if self.options.region else ""))
        return found

    def ids(self, role=None):
        return [instance["InstanceId"] for instance in self.need(role)]

    def group(self):
        """The security group of the cluster, made if it is not there: all ports within it, 22 from --authorized-address."""
        name, vpc = f"tfos-{self.name}", ["--vpc-id", self.options.vpc_id] if self.options.vpc_id else []
        filters = [f"Name=group-name,Values={name}", *([f"Name=vpc-id,Values={self.options.vpc_id}"] if vpc else [])]
        found = self.aws("describe-security-groups", "--filters", *filters)["SecurityGroups"]
        if found:
            return found[0]["GroupId"]
        group = self.aws("create-security-group", "--group-name", name, "--description", "tfos cluster", *vpc)["GroupId"]
        self.aws("authorize-security-group-ingress", "--group-id", group, "--protocol", "all", "--source-group", group)
        self.aws("authorize-security-group-ingress", "--group-id", group, "--protocol", "tcp", "--port", "22", "--cidr", self.options.authorized_address)
        return group

    def run_instances(self, role, count, kind, group):
        options = self.options
        tags = f"ResourceType=instance,Tags=[{{Key=tfos-cluster,Value={self.name}}},{{Key=tfos-role,Value={role}}},{{Key=Name,Value={self.name}-{role}}}]"
        words = ["run-instances", "--image-id", options.ami, "--count", str(count), "--instance-type", kind, "--key-name", options.key_pair,
                 "--security-group-ids", group, "--tag-specifications", tags,
                 "--block-device-mappings", json.dumps([{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": options.volume_size, "VolumeType": "gp3"}}])]
        if options.subnet_id:
            words += ["--subnet-id", options.subnet_id]
        if options.zone:
            words += ["--placement", f"AvailabilityZone={options.zone}"]
        if options.instance_profile_name:
            words += ["--iam-instance-profile", f"Name={options.instance_profile_name}"]
        if options.spot_price and role == "worker":
            words += ["--instance-market-options", json.dumps({"MarketType": "spot", "SpotOptions": {"MaxPrice": options.spot_price}})]
        self.aws(*words)

    def address(self, instance):
        return instance.get("PrivateIpAddress" if self.options.private_ips else "PublicIpAddress") or sys.exit(
            f"{instance['InstanceId']} has no {'private' if self.options.private_ips else 'public'} address: is it running?")

    def ssh_words(self, instance):
        identity = ["-i", self.options.identity_file] if self.options.identity_file else []
        return ["-o", "StrictHostKeyChecking=accept-new", *identity], f"{self.options.user}@{self.address(instance)}"

    def ssh(self, instance, command, check=True):
        settings, target = self.ssh_words(instance)
        return subprocess.run(["ssh", *settings, "-o", "ConnectTimeout=10", target, command], check=check).returncode

    def await_ssh(self, instance):
        for _ in range(SSH_TRIES):
            if self.ssh(instance, "true", check=False) == 0:
                return
            time.sleep(self.options.ssh_pause)
        sys.exit(f"{self.address(instance)} does not answer by ssh: check the key, and that the address you come from is in --authorized-address")

    def set_up(self):
        """Installs what a node needs on all instances."""
        self.aws("wait", "instance-running", "--instance-ids", *self.ids())
        scripts = sorted(str(path) for path in STANDALONE.glob("*.sh"))
        for instance in self.need():
            self.await_ssh(instance)
            settings, target = self.ssh_words(instance)
            subprocess.run(["scp", *settings, *scripts, self.options.wheel, f"{target}:"], check=True)
            variables = f"SPARK={shlex.quote(self.options.spark)} TENSORFLOW={shlex.quote(self.options.tensorflow)}"
            self.ssh(instance, f"sudo {variables} bash install_spark.sh {shlex.quote(Path(self.options.wheel).name)}")

    def start_spark(self):
        """The master's Spark, then the workers'."""
        self.aws("wait", "instance-running", "--instance-ids", *self.ids())
        master = self.need("master")[0]
        for instance in self.need():
            self.await_ssh(instance)
            part = role_of(instance)
            settings = f"PATH=/opt/tfos/bin:$PATH MASTER=spark://{master['PrivateIpAddress']}:7077 SPARK_WORKER_INSTANCES=1"
            sizes = "CORES_PER_WORKER=$(nproc) MEMORY_PER_WORKER=$(($(free -m | awk '/^Mem/ {print $2}') / 2))m"
            self.ssh(instance, f"{settings} {sizes} bash start_spark.sh {part}")
        print(f"spark://{master['PrivateIpAddress']}:7077")


def role_of(instance):
    return next((tag["Value"] for tag in instance.get("Tags", ()) if tag["Key"] == "tfos-role"), "")


def launch(cluster):
    options = cluster.options
    if not options.resume:
        if cluster.instances():
            sys.exit(f"a cluster named {cluster.name} is there already; --resume goes on with setting it up")
        group = cluster.group()
        cluster.run_instances("master", 1, options.master_instance_type or options.instance_type, group)
        cluster.run_instances("worker", options.slaves, options.instance_type, group)
    cluster.set_up()
    cluster.start_spark()


def destroy(cluster):
    ids = cluster.ids()
    if not agrees(cluster, f"terminate {', '.join(ids)}"):
        sys.exit("nothing was done")
    cluster.aws("terminate-instances", "--instance-ids", *ids)
    cluster.aws("wait", "instance-terminated", "--instance-ids", *ids)
    if cluster.options.delete_groups:
        cluster.aws("delete-security-group", "--group-id", cluster.group())


def agrees(cluster, what):
    return cluster.options.yes or input(f"{what}? (y/N) ").lower() in ("y", "yes")


def start(cluster):
    cluster.aws("start-instances", "--instance-ids", *cluster.ids())
    cluster.start_spark()


ACTIONS = {
    "launch": launch,
    "destroy": destroy,
    "start": start,
    "stop": lambda cluster: cluster.aws("stop-instances", "--instance-ids", *cluster.ids()),
    "reboot-slaves": lambda cluster: cluster.aws("reboot-instances", "--instance-ids", *cluster.ids("worker")),
    "get-master": lambda cluster: print(cluster.address(cluster.need("master")[0])),
    "login": lambda cluster: sys.exit(cluster.ssh(cluster.need("master")[0], "exec $SHELL -l", check=False)),
}


def parse_arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=ACTIONS)
    parser.add_argument("cluster_name")
    parser.add_argument("-k", "--key-pair", help="name of the key pair in EC2")
    parser.add_argument("-i", "--identity-file", help="its private key")
    parser.add_argument("-s", "--slaves", help="number of workers", type=int, default=1)
    parser.add_argument("-t", "--instance-type", help="of the workers", default="m7i.xlarge")
    parser.add_argument("-m", "--master-instance-type", help="default: as the workers")
    parser.add_argument("-r", "--region", help="default: that of aws's settings")
    parser.add_argument("-z", "--zone")
    parser.add_argument("-a", "--ami", help="an image with apt-get, dnf or yum; default: Ubuntu 24.04", default=UBUNTU)
    parser.add_argument("-u", "--user", help="of ssh", default="ubuntu")
    parser.add_argument("--wheel", help="of tfos; launch needs it")
    parser.add_argument("--spark", help="what pip installs", default="pyspark==4.0.*")
    parser.add_argument("--tensorflow", help="what pip installs", default="tensorflow==2.19.*")
    parser.add_argument("--spot-price", help="workers are spot instances, for at most that many dollars an hour")
    parser.add_argument("--vpc-id")
    parser.add_argument("--subnet-id")
    parser.add_argument("--private-ips", help="reach the instances by their private addresses", action="store_true")
    parser.add_argument("--instance-profile-name", help="IAM profile, for s3a:// paths")
    parser.add_argument("--authorized-address", help="who may come by ssh; must be given for launch", metavar="CIDR")
    parser.add_argument("--volume-size", help="GiB of each root disk", type=int, default=50)
    parser.add_argument("--resume", help="launch: set up the instances that are there", action="store_true")
    parser.add_argument("--delete-groups", help="destroy: the security group too", action="store_true")
    parser.add_argument("--yes", help="do not ask", action="store_true")
    parser.add_argument("--ssh-pause", help=argparse.SUPPRESS, type=float, default=5)
    options = parser.parse_args(argv)
    if options.action == "launch":
        for name in ("key_pair", "identity_file", "wheel", "authorized_address"):
            if not getattr(options, name):
                parser.error(f"launch needs --{name.replace('_', '-')}")
        if options.slaves < 1:
            parser.error("--slaves must be 1 or more")
        if not Path(options.wheel).is_file():
            parser.error(f"--wheel: there is no file {options.wheel}")
    return options


def main(argv):
    options = parse_arguments(argv)
    try:
        ACTIONS[options.action](Cluster(options))
    except FileNotFoundError as error:
        sys.exit(f"{error.filename} is not installed on this machine")
    except subprocess.CalledProcessError as error:
        sys.exit(f"{shlex.join(error.cmd)}: failed with {error.returncode}")


if __name__ == "__main__":
    main(sys.argv[1:])
