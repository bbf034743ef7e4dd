// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"io"
	"time"

	runner "github.com/ironrail/ironrail/provision/agent/userdata"

	"github.com/ironrail/ironrail/internal/userdata"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
)

// userDataTime is how long user data takes. Belief: that depends on the site's.
const userDataTime = 20 * time.Second

// userData is the unit of a script, and cloud-init: neither runs what the site wrote, which
// would act on the controller. Both end well.
func (n *node) userData(ctx context.Context) {
	pretend := func(ctx context.Context, _ string, out io.Writer) (int, error) {
		_, _ = io.WriteString(out, "not run in a rehearsal\n")
		return 0, n.cfg.Clock.Sleep(ctx, userDataTime)
	}
	if n.tree.exists(userdata.UnitWanted) && !n.tree.exists(userdata.RecordFile) {
		_, err := runner.Runner{Root: func() (rootfs.Root, error) { return n.tree, nil }, Clock: n.cfg.Clock, Run: pretend}.Once(ctx)
		n.units.end("ironrail-user-data", err == nil)
	}
	if n.tree.exists(userdata.SeedUserData) && !n.tree.exists(userdata.ResultFile) && n.cfg.Clock.Sleep(ctx, userDataTime) == nil {
		const result = `{"v1": {"datasource": "DataSourceNoCloud [seed=/var/lib/cloud/seed/nocloud][dsmode=net]", "errors": []}}` + "\n"
		_ = rootfs.WriteText(n.tree, userdata.ResultFile, result, 0o644) // a system that is switched off meanwhile has none
	}
}
