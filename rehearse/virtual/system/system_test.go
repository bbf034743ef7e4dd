// SPDX-License-Identifier: Apache-2.0

package system_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
	"github.com/ironrail/ironrail/rehearse/virtual/system/systemtest"
)

// What came over SSH, through the real client, ends as it does on a real node.
func TestCommands(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := systemtest.New(t, systemtest.NewSite(1, 1, 400e9))
		defer r.Stop()
		r.Wait()
		for _, c := range []struct {
			script string
			want   string // contained
			exit   int
		}{
			{`hostname; uname -r`, "n1\n6.1.0-56-amd64\n", 0},
			{`nothere a b`, "sh: 1: nothere: not found\n", 127},
			{`cat; exit 7`, "input\n", 7},
			{`echo a >/run/x && cat /run/x && test -f /run/x && ls /run`, "a\nx\n", 0},
			{`cat /nothere`, "cat: /nothere: No such file or directory\n", 1},
			{`mkdir -p /a/b && echo hi >/a/b/c && mv -fT /a/b/c /a/d && cat /a/d && rm -rf /a && test ! -e /a`, "hi\n", 0},
			{`printf 'x\ny\nz\n' | head -n 1 | grep -qxF x && echo found`, "found\n", 0},
			{`cd /sys/class/net && grep -Hs . */speed; echo $?`, "2\n", 0}, // patterns are not known
			{`cat /proc/sys/kernel/random/boot_id`, "-", 0},
			{`echo mine | sha256sum`, "5", 0},
			{`env A=b sh -c 'echo $A'`, "b\n", 0},
			{`timeout -k 5 2 sleep 100`, "", 124},
			{`sleep 3; echo slept`, "slept\n", 0},
			{`systemctl is-active ssh; systemctl is-active nothing`, "active\ninactive\n", 3},
			{`dmidecode -s system-serial-number`, "SN0\n", 0},
			{`nvidia-smi -L`, "GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-", 0},
			{`nvidia-smi --query-gpu=index,memory.total --format=csv`, "index, memory.total [MiB]\n0, 81559 MiB\n1, 81559 MiB\n", 0},
			{`ip -j addr show dev nothere`, "Device \"nothere\" does not exist.", 1},
			{`lscpu -J`, `"field": "Socket(s):"`, 0},
			{`mpirun --version`, "mpirun (Open MPI) 4.1.4\n", 0},
			{`kill -s KILL -- -99999`, "No such process", 1},
			{`modprobe nosuch`, "FATAL: Module nosuch not found", 1},
			{`modprobe rdma_rxe && test -d /sys/module/rdma_rxe`, "", 0},
			{`ibstat`, "CA 'mlx5_0'\n\tCA type: MT4129\n\tNumber of ports: 1\n", 0},
			{`ibstat mlx5_7`, "device not found", 255},
			{`rdma link`, "link mlx5_0/1 state ", 0},
			{`echo ` + strings.Repeat("x", 128<<10), "Argument list too long", 126},
			{`ibv_devices`, "    device          \t   node GUID\n", 0},
		} {
			out, exit := r.Sh("n1", c.script)
			if !strings.Contains(out, c.want) || exit != c.exit {
				t.Errorf("%s: status %d, want %d\n%q, want %q in it", c.script, exit, c.exit, out, c.want)
			}
		}
	})
}

// A command that is given up is killed with its group, and the connection stays.
func TestKill(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := systemtest.New(t, systemtest.NewSite(1, 1, 400e9))
		defer r.Stop()
		r.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		_, err := r.Run(ctx, "n1", onnode.Command{Argv: []string{"timeout", "-k", "5", "3600", "sh", "-c", "sleep 3600; touch /etc/late"}})
		if errkind.Of(err) != errkind.Timeout || time.Since(began) > 65*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if out, exit := r.Sh("n1", "test ! -e /etc/late"); exit != 0 {
			t.Error("it went on:", out)
		}
	})
}

// A wrong key and a node that is off are distinguished as on real ones.
func TestLogins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := systemtest.New(t, systemtest.NewSite(2, 1, 400e9))
		defer r.Stop()
		early, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		if _, err := r.Run(early, "n1", onnode.Command{Argv: []string{"true"}}); errkind.Of(err) != errkind.Unreachable {
			t.Errorf("while it boots: %v", err)
		}
		cancel()
		r.Wait()
		r.HostKey["n1"], r.HostKey["n2"] = r.HostKey["n2"], r.HostKey["n1"]
		if _, err := r.Run(t.Context(), "n1", onnode.Command{Argv: []string{"true"}}); errkind.Of(err) != errkind.Mismatch {
			t.Errorf("another host key: %v", err)
		}
		r.HostKey["n1"], r.HostKey["n2"] = r.HostKey["n2"], r.HostKey["n1"]
		if _, exit := r.Sh("n1", "echo >/root/.ssh/authorized_keys"); exit != 0 {
			t.Fatal(exit)
		}
		r.Disconnect()
		if _, err := r.Run(t.Context(), "n1", onnode.Command{Argv: []string{"true"}}); errkind.Of(err) != errkind.Auth {
			t.Errorf("a key that is gone: %v", err)
		}
		r.Off("n2")
		synctest.Wait()
		if _, err := r.Run(t.Context(), "n2", onnode.Command{Argv: []string{"true"}}); errkind.Of(err) != errkind.Unreachable {
			t.Errorf("off: %v", err)
		}
	})
}

// A reboot keeps the disk and loses memory.
func TestReboot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := systemtest.New(t, systemtest.NewSite(1, 1, 0))
		defer r.Stop()
		r.Wait()
		before, _ := r.Sh("n1", "echo kept >/etc/kept; echo lost >/run/lost; modprobe rdma_rxe; cat /proc/sys/kernel/random/boot_id")
		if out, exit := r.Sh("n1", "systemctl reboot"); exit != 0 {
			t.Fatal(out)
		}
		time.Sleep(time.Minute)
		out, exit := r.Sh("n1", "cat /etc/kept; test -e /run/lost || test -d /sys/module/rdma_rxe || cat /proc/sys/kernel/random/boot_id")
		if exit != 0 || !strings.HasPrefix(out, "kept\n") || strings.TrimPrefix(out, "kept\n") == before {
			t.Errorf("status %d, %q, boot before %q", exit, out, before)
		}
		if out, _ := r.Sh("n1", "poweroff"); out != "" {
			t.Error(out)
		}
		time.Sleep(time.Minute)
		if got := r.Exit("n1"); got != chassis.Shutdown {
			t.Errorf("it left as %v", got)
		}
	})
}

func TestAgentCheck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := systemtest.New(t, systemtest.NewSite(1, 1, 0))
		defer r.Stop()
		r.Wait()
		var got struct {
			Hostname, Kernel, System string
			BootID                   string `json:"boot_id"`
			Uptime                   float64
			Identity                 struct{ Serial string }
		}
		for _, want := range []string{"starting", "running"} {
			if err := onnode.Agent(t.Context(), r, "n1", struct{}{}, &got, "check"); err != nil {
				t.Fatal(err)
			}
			if got.Hostname != "n1" || got.Kernel != "6.1.0-56-amd64" || got.System != want || got.BootID == "" || got.Identity.Serial != "SN0" || got.Uptime < 30 {
				t.Errorf("got %+v, want %s", got, want)
			}
			time.Sleep(30 * time.Second)
		}
		if err := onnode.Write(t.Context(), r, "n1", "/etc/x/y", 0o640, []byte("text")); err != nil {
			t.Fatal(err)
		}
		if out, _ := r.Sh("n1", "cat /etc/x/y; ls -l /etc/x; ls -a /etc/x"); !strings.HasPrefix(out, "text-rw-r-----") || strings.Contains(out, ".ironrail") {
			t.Errorf("got %q", out)
		}
	})
}

// A cable that is pulled stops neither the virtual time nor the controller: the
// keep-alive gives the node up. Put back, the node answers again.
func TestCableCut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := systemtest.New(t, systemtest.NewSite(2, 1, 400e9))
		defer r.Stop()
		r.Wait()
		cut := func() {
			time.Sleep(10 * time.Second)
			r.Board.Detach(r.Inv.Nodes[0].Address)
		}
		for _, script := range []string{"sleep 3600", "sleep 20; echo " + strings.Repeat("x", 100_000), "cat"} {
			go cut()
			began := time.Now()
			_, err := r.Run(t.Context(), "n1", onnode.Command{Argv: []string{"sh", "-c", script}, Stdin: make([]byte, 300_000)})
			if took := time.Since(began); script != "cat" && (errkind.Of(err) != errkind.Unreachable || took > 5*time.Minute) {
				t.Errorf("%.10s: %v after %v", script, err, took)
			}
			time.Sleep(20 * time.Second)
			if out, exit := r.Sh("n2", "hostname"); exit != 0 || out != "n2\n" {
				t.Errorf("the other node: %d, %q", exit, out)
			}
			r.Board.Attach(r.Inv.Nodes[0].Address)
			time.Sleep(10 * time.Second)
			if out, exit := r.Sh("n1", "hostname"); exit != 0 || out != "n1\n" {
				t.Errorf("afterwards: %d, %q", exit, out)
			}
		}
	})
}
