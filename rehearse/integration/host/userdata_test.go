// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/userdata"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/host"
	"github.com/ironrail/ironrail/rehearse/virtual/system/systemtest"
)

// inBubble is a run whose clock is that of the virtual rack.
type inBubble struct{ *onnodetest.Run }

func (inBubble) Clock() clock.Clock { return clock.Wall{} }

// TestUserData: user data is waited for while it runs, and named with its end where it failed
// or was cut off. A node that was installed without any is as it should be.
func TestUserData(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inv := systemtest.NewSite(1, 1, 0)
		n := inv.Nodes[0]
		n.Image = &inventory.Image{Block: inventory.Block{Kind: "debian", Name: "os"}, Release: "bookworm"}
		n.Host = &inventory.HostSettings{Name: "gpu", UserData: "#!/bin/sh\ntrue\n"}
		r := systemtest.New(t, inv)
		defer r.Stop()
		r.Wait()
		s, run := host.New(inv, r), onnodetest.NewRun()
		st := steps(t, s, run, 1)[0]
		if !strings.Contains(st.Title, "user data") || len(st.Inputs) > 0 || st.Deadline.Limit < userdata.Limit {
			t.Errorf("%+v", st)
		}
		is := func(want stage.Conformity, words string) {
			t.Helper()
			if o, err := s.Observe(t.Context(), run, st); err != nil || o.State != want || !strings.Contains(o.Evidence, words) {
				t.Errorf("%+v, %v; want %s with %q", o, err, want, words)
			}
		}
		is(stage.Conforms, "user data") // there is none on the node
		r.Sh("n1", "mkdir -p /etc/ironrail /var/lib/ironrail; echo '#!/bin/sh' >/etc/ironrail/user-data")
		is(stage.Differs, "user data has not ended yet")
		record := func(text string) {
			r.Sh("n1", "echo '"+text+"' >/var/lib/ironrail/user-data.json")
		}
		boot, _ := r.Sh("n1", "cat /proc/sys/kernel/random/boot_id")
		record(`{"boot":"` + strings.TrimSpace(boot) + `","began":"2026-01-02T03:04:05Z"}`)
		began := time.Now()
		go func() {
			if (clock.Wall{}).Sleep(t.Context(), 3*time.Minute) == nil {
				record(`{"boot":"x","began":"2026-01-02T03:04:05Z","ended":"2026-01-02T03:07:05Z","exit":0}`)
			}
		}()
		if err := s.Apply(t.Context(), inBubble{run}, st); err != nil || time.Since(began) < 3*time.Minute {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		is(stage.Conforms, "user data")
		record(`{"boot":"x","began":"2026-01-02T03:04:05Z","ended":"2026-01-02T03:07:05Z","exit":3,"output":"no space left"}`)
		is(stage.Differs, "user data ended with status 3")
		err := s.Apply(t.Context(), run, st)
		if errkind.Of(err).Base() != errkind.Mismatch || !strings.Contains(errkind.Action(err), "journalctl -u ironrail-user-data.service") || !strings.Contains(errkind.Action(err), "ironrail rebuild n1") {
			t.Errorf("%v: %s", err, errkind.Action(err))
		}
		f := run.Findings
		if len(f) != 1 || f[0].Suspects[0].Part != "user data" || f[0].Cause != "user data ended with status 3" || len(f[0].Evidence) != 1 {
			t.Errorf("%+v", f)
		}
		record(`{"boot":"another","began":"2026-01-02T03:04:05Z"}`)
		is(stage.Differs, "cut off: the node restarted while it ran")
		r.Sh("n1", "rm /etc/ironrail/user-data /var/lib/ironrail/user-data.json; mkdir -p /var/lib/cloud/seed/nocloud /var/lib/cloud/data; echo '#cloud-config' >/var/lib/cloud/seed/nocloud/user-data")
		is(stage.Differs, "has not ended yet")
		r.Sh("n1", `echo '{"v1": {"datasource": "DataSourceNoCloud [seed=/var/lib/cloud/seed/nocloud][dsmode=net]", "errors": []}}' >/var/lib/cloud/data/result.json`)
		is(stage.Conforms, "user data")
	})
}
