// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/ironrail/ironrail/rehearse/virtual/model"
)

// mpiVersion is Open MPI of Debian 12.
const mpiVersion = "4.1.4"

// How long a run takes beside its iterations. Belief, but for the lab's whole run
// of 8 s with two emulated nodes.
const (
	mpiStart   = 2500 * time.Millisecond // daemons, Python and mpi4py
	mpiPerRank = 4 * time.Millisecond
	pythonTime = 120 * time.Millisecond
)

// runPython is python3 as far as it is called: whether mpi4py is there.
func runPython(ctx context.Context, c call) int {
	if c.n.cfg.Clock.Sleep(ctx, pythonTime) != nil {
		return 137
	}
	if len(c.Argv) == 3 && c.Argv[1] == "-c" && c.Argv[2] == "import mpi4py" {
		return 0
	}
	if len(c.Argv) == 2 && (c.Argv[1] == "--version" || c.Argv[1] == "-V") {
		c.print("Python 3.11.2\n")
		return 0
	}
	_, _ = fmt.Fprintf(c.Err, "%s: this virtual node runs no Python\n", c.Argv[0])
	return 1
}

// job is one run of mpirun with the all-reduce script.
type job struct {
	call
	hosts      []netip.Addr
	agent      []string // the command that reaches other nodes
	data       netip.Prefix
	script     string
	iterations int
	warmups    int
	sizes      []int64
	slots      int       // ranks on each host, of the last one that says so
	perf       *perfTest // all_reduce_perf in place of the script; nil: the script
}

// runMpirun is Open MPI's launcher for python3 allreduce.py over TCP, and for
// all_reduce_perf.
func runMpirun(ctx context.Context, c call) int {
	if len(c.Argv) == 2 && c.Argv[1] == "--version" {
		c.print("mpirun (Open MPI) " + mpiVersion + "\n\nReport bugs to http://www.open-mpi.org/community/help/\n")
		return 0
	}
	j, err := jobOptions(c)
	if err != nil {
		_, _ = fmt.Fprintln(c.Err, "mpirun: Error: "+err.Error())
		return 1
	}
	if c.n.cfg.Clock.Sleep(ctx, mpiStart+time.Duration(len(j.hosts))*mpiPerRank) != nil {
		return 137
	}
	members, text := j.start(ctx)
	if text != "" {
		_, _ = c.Err.Write([]byte(text))
		return 1
	}
	if j.perf != nil {
		return j.perform(ctx, members)
	}
	ports, ok := j.ports(members)
	if !ok {
		return 1
	}
	return j.reduce(ctx, members, ports)
}

// jobValues are how many values the options of mpirun have; others have none, with one
// dash or two.
var jobValues = map[string]int{"--mca": 2, "-np": 1, "-n": 1, "--host": 1, "-host": 1, "--hostfile": 1, "--timeout": 1, "--bind-to": 1, "-x": 1, "--map-by": 1}

// jobOptions reads the command line.
func jobOptions(c call) (job, error) {
	j := job{call: c, slots: 1}
	argv := c.Argv[1:]
	env := map[string]string{}
	for len(argv) > 0 && strings.HasPrefix(argv[0], "-") {
		takes := jobValues[argv[0]]
		if len(argv) <= takes {
			return j, fmt.Errorf("option %s has no value", argv[0])
		}
		if err := j.setOption(argv[0], argv[1:takes+1], env); err != nil {
			return j, err
		}
		argv = argv[takes+1:]
	}
	var err error
	program := ""
	if len(argv) > 0 {
		program = strings.TrimSuffix(path.Base(argv[0]), withMPI)
	}
	if _, known := perfPrograms[program]; known && len(j.hosts) > 0 {
		j.script = argv[0]
		j.perf, err = perfArguments(program, argv[1:], env)
	} else {
		err = j.setScript(argv)
	}
	return j, err
}

// setOption takes one option of mpirun; env is what the ranks get.
func (j *job) setOption(name string, values []string, env map[string]string) (err error) {
	switch name {
	case "--mca":
		if values[0] == "plm_rsh_agent" {
			j.agent = strings.Fields(values[1])
		}
		if values[0] == "btl_tcp_if_include" {
			j.data, err = netip.ParsePrefix(values[1])
		}
	case "--host", "-host":
		err = j.setHosts(values[0])
	case "--hostfile":
		err = j.readHosts(values[0])
	case "-x":
		name, value, _ := strings.Cut(values[0], "=")
		env[name] = value
	}
	return err
}

// setScript takes "python3 allreduce.py ITERATIONS WARMUPS SIZE...".
func (j *job) setScript(argv []string) error {
	if len(argv) < 4 || path.Base(argv[0]) != "python3" || path.Base(argv[1]) != "allreduce.py" {
		return errors.New("this virtual node runs python3 allreduce.py and all_reduce_perf alone")
	}
	j.script = argv[1]
	var numbers []int64
	for _, a := range argv[2:] {
		n, err := strconv.ParseInt(a, 10, 64)
		if err != nil || n < 0 {
			return fmt.Errorf("argument %q", a)
		}
		numbers = append(numbers, n)
	}
	j.iterations, j.warmups, j.sizes = int(numbers[0]), int(numbers[1]), numbers[2:]
	if len(j.hosts) < 1 || j.iterations < 1 {
		return errors.New("no hosts or no iterations")
	}
	return nil
}

func (j *job) setHosts(list string) error {
	for h := range strings.SplitSeq(list, ",") {
		name, slots, some := strings.Cut(h, ":")
		a, err := netip.ParseAddr(name)
		if err != nil {
			return err
		}
		if n, err := strconv.Atoi(slots); some && err == nil && n > 0 && n <= 64 {
			j.slots = n
		}
		j.hosts = append(j.hosts, a)
	}
	return nil
}

// readHosts reads a file of hosts, each with its slots, as orte_hosts(7) has it.
func (j *job) readHosts(file string) error {
	b, err := j.n.tree.ReadFile(relativeName(file))
	if err != nil {
		return fmt.Errorf("hostfile %s: %w", file, err)
	}
	for line := range strings.Lines(string(b)) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		host := words[0]
		if len(words) > 1 {
			host += ":" + strings.TrimPrefix(words[1], "slots=")
		}
		if err := j.setHosts(host); err != nil {
			return err
		}
	}
	return nil
}

// start reaches every member as the launcher does, by SSH with the key and the
// known hosts that its agent names. It returns what is printed when one fails.
func (j job) start(ctx context.Context) ([]*node, string) {
	members := []*node{}
	with := j.login()
	for _, a := range j.hosts {
		n := j.n
		if a != j.n.cfg.Address {
			var text string
			if n, text = j.reach(ctx, a, with); text != "" {
				return nil, text + unreached
			}
		}
		if !n.has(pkgMPI) || j.perf == nil && !n.has(pkgMPI4Py) {
			return nil, fmt.Sprintf("bash: line 1: orted: command not found\n%s", unreached)
		}
		if j.perf == nil && !n.tree.exists(relativeName(j.script)) {
			return nil, fmt.Sprintf("/usr/bin/python3: can't open file '%s': [Errno 2] No such file or directory\n%s", j.script, abortedText(2))
		}
		if j.perf != nil && !n.tree.exists(relativeName(j.script)) {
			return nil, fmt.Sprintf("%smpirun was unable to launch the specified application as it could not access\nor execute an executable:\n\nExecutable: %s\nNode: %s\n\nwhile attempting to start process rank 0.\n%s", rule, j.script, n.hostname(), rule)
		}
		members = append(members, n)
	}
	return members, ""
}

const rule = "--------------------------------------------------------------------------\n"

// unreached is what Open MPI 4 says when a daemon did not start.
const unreached = rule + "ORTE was unable to reliably start one or more daemons.\nThis usually is caused by:\n\n" +
	"* not finding the required libraries and/or binaries on\n  one or more nodes. Please check your PATH and LD_LIBRARY_PATH\n  settings, or configure OMPI with --enable-orterun-prefix-by-default\n\n" +
	"* lack of authority to execute on one or more specified nodes.\n  Please verify your allocation and authorities.\n" + rule

// abortedText returns what Open MPI 4 says when a rank ended badly.
func abortedText(status int) string {
	return fmt.Sprintf("%smpirun detected that one or more processes exited with non-zero status, thus causing\nthe job to be terminated. The first process to do so was:\n\n  Process name: [[41234,1],0]\n  Exit code:    %d\n%s", rule, status, rule)
}

// ports finds the port of every member in the data network, and warns as Open MPI
// does of one that has none.
func (j job) ports(members []*node) ([]Port, bool) {
	var list []Port
	whole := true
	for _, n := range members {
		p, _, ok := n.portWithin(j.data)
		if !ok {
			whole = false
			_, _ = fmt.Fprintf(j.Err, "%sWARNING: An invalid value was given for btl_tcp_if_include.  This\nvalue will be ignored.\n\n  Local host: %s\n  Value:      %s\n  Message:    Did not find interface matching this subnet\n%s", rule, n.hostname(), j.data, rule)
		}
		list = append(list, p)
	}
	return list, whole
}

// toNumber writes a figure as Python does.
func toNumber(v float64) json.Number {
	s := strconv.FormatFloat(v, 'g', -1, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return json.Number(s)
}

// reduce runs the script's sizes and prints its lines.
func (j job) reduce(ctx context.Context, members []*node, ports []Port) int {
	n := len(members)
	var hosts []string
	var ids []model.PortID
	for i, m := range members {
		hosts, ids = append(hosts, strconv.Quote(m.hostname())), append(ids, ports[i].ID)
	}
	j.print(fmt.Sprintf("{\"ranks\": %d, \"hosts\": [%s], \"mpi\": \"Open MPI v%s, package: Debian OpenMPI, ident: %s, repo rev: v%s, May 26, 2022\"}\n", n, strings.Join(hosts, ", "), mpiVersion, mpiVersion, mpiVersion))
	zeros := strings.TrimSuffix(strings.Repeat("0, ", n), ", ")
	for _, size := range j.sizes {
		size = max(size/4, 1) * 4
		took := time.Duration(0)
		if n > 1 {
			var err error
			q := model.Reduction{Test: fmt.Sprintf("all_reduce/%d", size), Members: ids, Size: size, MTU: int(members[0].fs.Int("sys/class/net", ports[0].Netdev, "mtu"))}
			if took, err = j.n.cfg.Site.model.AllReduce(q); err != nil {
				return j.broken(ctx, members, ports)
			}
			for i := range ids {
				j.n.cfg.Site.model.Carry(ids[i], ids[(i+1)%n], 1, 2*size*int64(n-1)/int64(n)*int64(j.iterations))
			}
		} else {
			took = time.Duration(float64(size) / 8e9 * float64(time.Second))
		}
		took = max(took, time.Microsecond)
		if j.n.cfg.Clock.Sleep(ctx, time.Duration(j.iterations+j.warmups)*took) != nil {
			return 137
		}
		if i := j.endedMember(members); i >= 0 {
			_, _ = fmt.Fprintf(j.Err, "%sORTE has lost communication with a remote daemon.\n\n  HNP daemon   : [[41234,0],0] on node %s\n  Remote daemon: [[41234,0],%d] on node %s\n\nThis is usually due to either a failure of the TCP network\nconnection to the node, or possibly an internal failure of\nthe daemon itself. We cannot recover from this failure, and\ntherefore will terminate the job.\n%s",
				rule, members[0].hostname(), i, members[i].hostname(), rule)
			return 1
		}
		us := took.Seconds() * 1e6
		alg := float64(size) / took.Seconds()
		j.print(fmt.Sprintf("{\"size\": %d, \"ranks\": %d, \"iterations\": %d, \"time_us\": {\"min\": %s, \"avg\": %s, \"max\": %s}, \"algbw\": %s, \"busbw\": %s, \"wrong\": 0, \"wrong_by_rank\": [%s]}\n",
			size, n, j.iterations, toNumber(us*0.94), toNumber(us), toNumber(us*1.12), toNumber(alg), toNumber(alg*2*float64(n-1)/float64(n)), zeros))
	}
	return 0
}

// endedMember returns a member whose system has ended meanwhile, or -1.
func (j job) endedMember(members []*node) int {
	for i, m := range members {
		if j.n.cfg.Site.at(j.hosts[i]) != m {
			return i
		}
	}
	return -1
}

// broken is a run whose ranks do not reach each other over the rail.
func (j job) broken(ctx context.Context, members []*node, ports []Port) int {
	if j.n.cfg.Clock.Sleep(ctx, arpTime) != nil {
		return 137
	}
	bad := 0
	for i := range ports { // the rank whose neighbours both fail, when one is down
		if !j.n.cfg.Site.model.State(ports[i].ID).Up {
			bad = i
		}
	}
	_, a, _ := members[bad].portWithin(j.data)
	from := members[(bad+1)%len(members)]
	_, _ = fmt.Fprintf(j.Err, "%sWARNING: Open MPI failed to TCP connect to a peer MPI process.  This\nshould not happen.\n\nYour Open MPI job may now hang or fail.\n\n  Local host: %s\n  PID:        %d\n  Message:    connect() to %s:1024 failed\n  Error:      No route to host (113)\n%s%s",
		rule, from.hostname(), 700+bad%97, a, rule, abortedText(1))
	return 1
}
