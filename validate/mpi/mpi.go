// SPDX-License-Identifier: Apache-2.0

// Package mpi runs an all-reduce over installed nodes with Open MPI, in host
// memory and over TCP: it proves that the nodes compute together over their
// rails with right results. It is no measure of RDMA, and its results say so.
//
// mpirun on the first member reaches the others with SSH. The key for that is
// made for the run, lies in the memory of the first member alone, opens the
// others only from its address and only for the length of the run, and is
// removed afterwards.
package mpi

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sync/errgroup"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
)

// Transport is what every result of this package says it ran over.
const Transport = "tcp (not RDMA)"

//go:embed allreduce.py
var script []byte

// Member is one node of the run. One rank runs on each.
type Member struct {
	Node    string
	Address netip.Addr   // on the boot network, for SSH and Open MPI's own talk
	Rails   []netip.Addr // its addresses on the fabric, to recognise it in messages
	HostKey string       // its SSH host key, as "ssh-ed25519 AAAA..."
}

// Job is one all-reduce over two or more members.
type Job struct {
	Members    []Member
	Control    netip.Prefix // the boot network
	Data       netip.Prefix // what the reduced data travel over
	Sizes      []int64      // bytes, a multiple of four each
	Iterations int
	Warmups    int
	Limit      time.Duration // after which the run is ended

	Start     string // the program that starts the job, with its path where it is in none of the usual folders; "": mpirun
	Libraries string // folder of Open MPI's libraries, where the linker does not look by itself; "": it does

	// Program is what ranks run in place of this package's all-reduce; nil: that.
	Program *Program
}

// Program is what every rank of a job runs.
type Program struct {
	Argv  []string
	Env   []string // NAME=VALUE, of every rank; no secret: it stands in a command line
	Ranks int      // on each member
}

// ranks is how many ranks run on each member.
func (j Job) ranks() int {
	if j.Program == nil {
		return 1
	}
	return j.Program.Ranks
}

// program is the command line of a rank; dir is the run's folder.
func (j Job) program(dir string) []string {
	if j.Program != nil {
		return j.Program.Argv
	}
	argv := []string{"/usr/bin/python3", dir + "/allreduce.py", strconv.Itoa(j.Iterations), strconv.Itoa(j.Warmups)}
	for _, s := range j.Sizes {
		argv = append(argv, strconv.FormatInt(s, 10))
	}
	return argv
}

// grace is the time beyond Limit that mpirun has to end by itself.
const grace = 15 * time.Second

// argv returns the command line for the first member; dir is the run's folder.
func (j Job) argv(dir string) []string {
	agent := strings.Join([]string{
		"/usr/bin/ssh -F /dev/null -i", dir + "/id", "-o UserKnownHostsFile=" + dir + "/known_hosts", "-o GlobalKnownHostsFile=/dev/null",
		"-o StrictHostKeyChecking=yes -o IdentitiesOnly=yes -o BatchMode=yes -o ConnectTimeout=15 -o LogLevel=ERROR",
	}, " ")
	limit := int(j.Limit.Seconds())
	argv := []string{
		"timeout", "-k", "10", strconv.Itoa(limit + int(grace.Seconds())),
		cmp.Or(j.Start, "mpirun"), "--allow-run-as-root", "--timeout", strconv.Itoa(limit), "--bind-to", "none",
		"--mca", "plm_rsh_agent", agent, "--mca", "plm_rsh_no_tree_spawn", "1", "--mca", "orte_keep_fqdn_hostnames", "1",
		// mpirun holds a connection for each member, and a login's usual limit is 1,024
		// open files: Open MPI takes as many as the system allows.
		"--mca", "opal_set_max_sys_limits", "1",
		"--mca", "pml", "ob1", "--mca", "btl", "tcp,self",
		"--mca", "btl_tcp_if_include", j.Data.String(), "--mca", "oob_tcp_if_include", j.Control.String(),
		"-np", strconv.Itoa(len(j.Members) * j.ranks()), "--hostfile", dir + "/hosts",
	}
	if j.Libraries != "" {
		argv = append(argv, "-x", "LD_LIBRARY_PATH="+j.Libraries)
	}
	if j.Program != nil {
		for _, e := range j.Program.Env {
			argv = append(argv, "-x", e)
		}
	}
	return append(argv, j.program(dir)...)
}

// hosts is the file of the members with the ranks of each. In an argument they would
// be longer than Linux takes from some 8,000 members on: MAX_ARG_STRLEN is 128 KiB.
func (j Job) hosts() []byte {
	var b bytes.Buffer
	for _, m := range j.Members {
		fmt.Fprintf(&b, "%s slots=%d\n", m.Address, j.ranks())
	}
	return b.Bytes()
}

// knownHosts pins the host key of every member under its address.
func (j Job) knownHosts() []byte {
	var b bytes.Buffer
	for _, m := range j.Members {
		fmt.Fprintf(&b, "%s %s\n", m.Address, m.HostKey)
	}
	return b.Bytes()
}

// marker starts the file of keys that this package puts on a node, so that it
// never touches one that somebody else wrote.
const marker = "# ironrail: key of one all-reduce run"

// authorized is the file that lets the run's key in: from the first member
// alone, without terminal or forwarding, and not after the run could still go
// on (the Z of UTC needs OpenSSH 9.1).
func (j Job) authorized(key ssh.PublicKey, now time.Time) []byte {
	until := now.Add(j.Limit + grace + 5*time.Minute).UTC().Format("20060102150405Z")
	return fmt.Appendf(nil, "%s\nfrom=\"%s\",restrict,expiry-time=\"%s\" %s", marker, j.Members[0].Address, until, ssh.MarshalAuthorizedKey(key))
}

// keysFile is sshd's second default file of keys (AuthorizedKeysFile,
// sshd_config(5)); the first one, the administrator's, is left alone.
const keysFile = "/root/.ssh/authorized_keys2"

// allowScript puts the keys of its standard input into $1 unless that file is
// somebody else's; $2 is the marker. An input that ends before its first line does, as
// when the controller dies, leaves nothing: the file would be nobody's.
const allowScript = `set -e
umask 077
if [ -e "$1" ] && ! head -n 1 -- "$1" | grep -qxF -- "$2"; then
	echo "$1 exists and is not ironrail's" >&2
	exit 3
fi
mkdir -p -- "$(dirname -- "$1")"
cat >"$1.ironrail"
if ! head -n 1 -- "$1.ironrail" | grep -qxF -- "$2"; then
	rm -f -- "$1.ironrail"
	exit 4
fi
mv -fT -- "$1.ironrail" "$1"
`

// forgetScript removes what allowScript put.
const forgetScript = `if [ -e "$1" ] && head -n 1 -- "$1" | grep -qxF -- "$2"; then rm -f -- "$1"; fi`

// Run runs the job and returns what it printed and what that means. A run that
// ended badly is an error, an *onnode.ExitError when mpirun itself said so; what was
// printed is returned in both cases. An error around onnode.ErrCut is about the
// output and speaks against no member. What was put on the nodes is removed in every
// case, also when ctx has ended.
func (j Job) Run(ctx context.Context, nodes onnode.Nodes, now time.Time) (Output, Printed, error) {
	if len(j.Members) < 2 {
		return Output{}, Printed{}, errkind.New(errkind.Refused, "an all-reduce needs two nodes, not %d", len(j.Members))
	}
	r := newReader(j)
	printed, err := j.Launch(ctx, nodes, now, r, nil)
	if !printed.Ended {
		return Output{}, printed, err
	}
	out, wrong := r.output()
	return out, printed, errors.Join(err, wrong)
}

// Printed is what a run printed.
type Printed struct {
	Text  []byte // both streams; of a long one the beginning and the end
	Named string // the one member that the run names where something failed; "" when it names none or several
	Ended bool   // the run ended well
}

// Launch runs the job and gives what it prints to stdout and stderr while it prints
// it; either may be nil. Its errors are those of Run; beside one, Ended says that only
// the nodes could not be cleaned up.
func (j Job) Launch(ctx context.Context, nodes onnode.Nodes, now time.Time, stdout, stderr io.Writer) (printed Printed, err error) {
	id := make([]byte, 8)
	if _, err := rand.Read(id); err != nil {
		return Printed{}, err
	}
	dir := "/run/ironrail/allreduce-" + hex.EncodeToString(id)
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), j.cleanupLimit())
		defer cancel()
		err = errors.Join(err, j.cleanup(clean, nodes, dir))
	}()
	if err := j.setup(ctx, nodes, dir, now); err != nil {
		return Printed{}, err
	}
	first := j.Members[0].Node
	argv := j.argv(dir)
	known := membersByWord(j.Members)
	out, errs := newWatcher(known, stdout), newWatcher(known, stderr)
	res, err := nodes.Run(ctx, first, onnode.Command{Argv: argv, Stdout: out, Stderr: errs})
	printed.Text = bytes.Join([][]byte{res.Stdout, res.Stderr}, []byte("\n"))
	out.close()
	errs.close()
	printed.Named = namedMember(out, errs)
	if err != nil {
		return printed, fmt.Errorf("node %s: mpirun: %w", first, err)
	}
	if res.Exit != 0 {
		return printed, &onnode.ExitError{Node: first, Argv: argv[4:], Output: res}
	}
	if out.ignored || errs.ignored {
		return printed, errkind.New(errkind.NotFound, "a node has no interface in %s, so that Open MPI took another way", j.Data)
	}
	printed.Ended = true
	return printed, nil
}

// setup makes the key and puts everything in place, on the members the keys
// last. Everything but the keys lies in /run, which is memory.
func (j Job) setup(ctx context.Context, nodes onnode.Nodes, dir string, now time.Time) error {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	block, err := ssh.MarshalPrivateKey(private, "ironrail all-reduce")
	if err != nil {
		return err
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		return err
	}
	first := j.Members[0].Node
	if err := onnode.Exec(ctx, nodes, first, "install", "-d", "-m", "0700", "/run/ironrail", dir); err != nil {
		return err
	}
	files := []struct {
		name string
		b    []byte
	}{{"id", pem.EncodeToMemory(block)}, {"known_hosts", j.knownHosts()}, {"hosts", j.hosts()}}
	for _, f := range files {
		if err := onnode.Write(ctx, nodes, first, dir+"/"+f.name, 0o600, f.b); err != nil {
			return err
		}
	}
	return errors.Join(eachMember(j.Members, func(i int, m Member) error {
		if j.Program == nil {
			if err := onnode.Write(ctx, nodes, m.Node, dir+"/allreduce.py", 0o600, script); err != nil {
				return err
			}
		}
		if i == 0 {
			return nil // mpirun starts its own rank without SSH
		}
		if _, err := onnode.Feed(ctx, nodes, m.Node, j.authorized(key, now), "sh", "-c", allowScript, "sh", keysFile, marker); err != nil {
			return fmt.Errorf("let the first member in: %w", err)
		}
		return nil
	})...)
}

// cleanupLimit is how long the removal of what was put on the nodes may take: they
// are cleaned membersAtOnce at a time.
func (j Job) cleanupLimit() time.Duration {
	return 30*time.Second + time.Duration(len(j.Members)/membersAtOnce)*time.Second
}

// membersAtOnce is how many members are prepared or cleaned up side by side.
const membersAtOnce = 64

// mostErrors is how many members' errors one error holds.
const mostErrors = 8

// eachMember does something on every member and returns the errors in their order; of
// many the first ones.
func eachMember(members []Member, do func(int, Member) error) []error {
	errs := make([]error, len(members))
	var g errgroup.Group
	g.SetLimit(membersAtOnce)
	for i, m := range members {
		g.Go(func() error {
			errs[i] = do(i, m)
			return nil
		})
	}
	_ = g.Wait() // the errors are in errs
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if more := len(errs) - mostErrors; more > 0 {
		errs = append(errs[:mostErrors], fmt.Errorf("and %d more", more))
	}
	return errs
}

// cleanup removes keys first and then files, on every member, and reports what
// could not be removed.
func (j Job) cleanup(ctx context.Context, nodes onnode.Nodes, dir string) error {
	errs := eachMember(j.Members, func(i int, m Member) error {
		var key error
		if i > 0 {
			key = onnode.Exec(ctx, nodes, m.Node, "sh", "-c", forgetScript, "sh", keysFile, marker)
		}
		err := onnode.Exec(ctx, nodes, m.Node, "rm", "-rf", "--", dir)
		return errors.Join(key, err)
	})
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("clean up after the all-reduce (its key expires by itself): %w", err)
	}
	return nil
}
