// SPDX-License-Identifier: Apache-2.0

package system_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/rehearse/virtual/model"
	"github.com/ironrail/ironrail/rehearse/virtual/system/systemtest"
	"github.com/ironrail/ironrail/validate/perftest"
)

// samples is where outputs of real nodes are, beside the repository.
const samples = "../../../../shared/samples"

var (
	figures = regexp.MustCompile(`0x[0-9a-f]+|[0-9]+(\.[0-9]+)?`)
	blanks  = regexp.MustCompile(`[ \t]+`)
)

// shape is a text without its figures and names: what must be equal in the output
// of a real node and of a virtual one.
func shape(text string) []string {
	var list []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(blanks.ReplaceAllString(figures.ReplaceAllString(line, "N"), " "))
		if line != "" && !strings.HasPrefix(line, "---") {
			list = append(list, line)
		}
	}
	return list
}

func sample(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(samples, name))
	if err != nil {
		t.Skip("no samples here")
	}
	return string(b)
}

// addressed gives the rails of all nodes addresses, as the agent does it for a fabric.
func addressed(t *testing.T, r *systemtest.Rig) {
	t.Helper()
	for i, n := range r.Inv.Nodes {
		want := wire.RoCEParams{MTU: 9000}
		for _, p := range n.Hardware.NICs[1].Ports {
			want.Ports = append(want.Ports, wire.RoCEPort{Rail: p.Rail, PCI: p.PCI, Address: fmt.Sprintf("10.77.%d.%d/24", 16+p.Rail, 11+i)})
		}
		var got wire.RoCEResult
		if err := onnode.Agent(t.Context(), r, n.Name, want, &got, "roce", "apply"); err != nil || !got.Conforms {
			t.Fatalf("%s: %+v, %v", n.Name, got, err)
		}
	}
}

// perfRun runs ib_write_bw between n1 and n2 and returns what both sides print.
func perfRun(t *testing.T, r *systemtest.Rig, options ...string) (client, server onnode.Output) {
	t.Helper()
	argv := append([]string{"ib_write_bw", "-d", "mlx5_0", "-x", "3", "-F"}, options...)
	done := make(chan onnode.Output)
	go func() {
		out, err := r.Run(t.Context(), "n2", onnode.Command{Argv: argv})
		if err != nil {
			t.Error(err)
		}
		done <- out
	}()
	client, err := r.Run(t.Context(), "n1", onnode.Command{Argv: append(argv, "10.77.0.12")})
	if err != nil {
		t.Error(err)
	}
	return client, <-done
}

func TestWriteBW(t *testing.T) {
	t.Parallel()
	real := sample(t, "ib_write_bw/superbench-8M.log")
	synctest.Test(t, func(t *testing.T) {
		r := systemtest.New(t, systemtest.NewSite(2, 1, 400e9))
		defer r.Stop()
		r.Wait()
		addressed(t, r)
		began := time.Now()
		client, server := perfRun(t, r, "-s", "8388608", "-n", "20000")
		if took := time.Since(began); took < 3*time.Second || took > 6*time.Second { // 156 GiB at 49 GB/s
			t.Errorf("it took %v", took)
		}
		for name, out := range map[string]onnode.Output{"client": client, "server": server} {
			got, err := perftest.Parse(out.Stdout)
			row, ok := got.Largest()
			if err != nil || !ok || out.Exit != 0 || got.Link != "Ethernet" || got.MTU != 4096 || row.Size != 8<<20 || row.Iterations != 20000 || row.Average < 48e9 || len(got.Notes) > 0 {
				t.Errorf("%s: status %d, %+v, %v\n%s%s", name, out.Exit, got, err, out.Stdout, out.Stderr)
			}
		}
		// Every line of the real program's tables is there, but for what Ethernet has
		// otherwise.
		ours := strings.Join(append(shape(string(client.Stdout)), shape(string(server.Stdout))...), "\n")
		for _, line := range shape(real) {
			line = strings.NewReplacer("Device : ibN", "Device : mlxN_N", "Link type : IB", "Link type : Ethernet").Replace(line)
			if !strings.Contains(ours, line) {
				t.Errorf("the real output has %q, ours\n%s", line, ours)
			}
		}
		if gbits, _ := perfRun(t, r, "--report_gbits"); !strings.Contains(string(gbits.Stdout), "BW average[Gb/sec]") {
			t.Errorf("%s", gbits.Stdout)
		}
	})
}

// What the real program says when something is not there.
func TestWriteBWFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := systemtest.New(t, systemtest.NewSite(2, 1, 400e9))
		defer r.Stop()
		r.Wait()
		addressed(t, r)
		for _, c := range []struct{ script, want string }{
			{"ib_write_bw -d mlx5_0 -x 3 -p 20001 -F 10.77.0.12", "Couldn't connect to 10.77.0.12:20001\n"},
			{"ib_write_bw -d mlx5_9 -x 3 -F 10.77.0.12", "Unable to find the Infiniband/RoCE device"},
			{"ib_write_bw -d mlx5_0 -n zero", "invalid syntax"},
		} {
			if out, exit := r.Sh("n1", c.script); exit != 1 || !strings.Contains(out, c.want) {
				t.Errorf("%s: %d, %q", c.script, exit, out)
			}
		}
		if c, s := perfRun(t, r, "-x", "9"); c.Exit != 1 || !strings.Contains(string(c.Stderr), "Failed to modify QP") || s.Exit != 1 {
			t.Errorf("a GID that is not there: %+v, %+v", c, s)
		}
		port := model.PortID{Node: "n2", NIC: "rail"}
		if err := r.Model.SetDown(port, true); err != nil {
			t.Fatal(err)
		}
		if out, exit := r.Sh("n2", "ib_write_bw -d mlx5_0 -x 3 -F"); exit != 1 || !strings.Contains(out, "Port number 1 state is Down") {
			t.Errorf("a port without light: %d, %q", exit, out)
		}
		if err := r.Model.SetDown(port, false); err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(2 * time.Second)
			r.Off("n2")
		}()
		argv := []string{"ib_write_bw", "-d", "mlx5_0", "-x", "3", "-n", "90000000", "-F"}
		go r.Run(t.Context(), "n2", onnode.Command{Argv: argv})
		out, err := r.Run(t.Context(), "n1", onnode.Command{Argv: append(argv, "10.77.0.12")})
		if err != nil || out.Exit != 1 {
			t.Errorf("the other node lost power: %+v, %v", out, err)
		}
	})
}

func TestIbstat(t *testing.T) {
	t.Parallel()
	real := sample(t, "ibstat/gpud-ibstat.47.0.h100.some.down.0.txt")
	synctest.Test(t, func(t *testing.T) {
		r := systemtest.New(t, systemtest.NewSite(1, 2, 400e9))
		defer r.Stop()
		r.Wait()
		addressed(t, r)
		out, exit := r.Sh("n1", "ibstat")
		if exit != 0 || !strings.Contains(out, "\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: 400\n") {
			t.Errorf("status %d\n%s", exit, out)
		}
		first := func(text string) string {
			lines := shape(text)
			return strings.Join(lines[:min(17, len(lines))], "\n")
		}
		want := strings.Replace(first(real), "InfiniBand", "Ethernet", 1)
		if got := first(out); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		if out, _ := r.Sh("n1", "rdma -j link"); !strings.Contains(out, `"ifname":"mlx5_1","state":"ACTIVE","physical_state":"LINK_UP","netdev":"`) {
			t.Error(out)
		}
	})
}
