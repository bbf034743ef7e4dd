// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/observe"
	"github.com/ironrail/ironrail/provision/rebuild"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/rehearsal/rehearsaltest"
)

// TestEncryption brings nodes up whose data lie in LUKS2 volumes on a partition, an array and a
// logical volume; finds a TPM that was cleared and enrolls it again; and reinstalls a node, of
// which the preserved volume stays, with its recovery key, and the others are made anew.
func TestEncryption(t *testing.T) {
	t.Parallel()
	const node = "r01-u09"
	layout := strings.Replace(mirror, "    mount      = \"/scratch\"\n", "    mount      = \"/scratch\"\n    encryption = \"tpm2\"\n", 1) +
		"  volume_group \"vg_0\" {\n    size = \"50GB\"\n  }\n  data \"home\" {\n    volume_group = \"vg_0\"\n    mount        = \"/home\"\n    encryption   = \"tpm2\"\n  }\n" +
		"  data \"array\" {\n    size       = \"20GB\"\n    mount      = \"/srv/array\"\n    encryption = \"tpm2\"\n  }\n"
	o := rehearsal.Options{Seed: 7, Dir: t.TempDir()}
	o.Then = func(ctx context.Context, r *rehearsal.Rehearsal) error {
		l := rehearsaltest.Of(r)
		if p, err := l.Plan(ctx, provision.PlanOptions{Refresh: true}); err != nil || !p.Empty() {
			t.Errorf("a second plan: %v, %v", ids(p), err)
		}
		volumes := func(when string) (uuids []string) {
			t.Helper()
			w, err := writtenOf(ctx, l, node)
			if err != nil {
				t.Errorf("%s: %v", when, err)
				return nil
			}
			for _, v := range w.Result.Layout.Volumes {
				if v.Encryption == "" {
					continue
				}
				k, err := l.Site.Keys.Recovery().Find(v.UUID)
				if err != nil || k.Node != node || k.Volume != v.Name {
					t.Errorf("%s: recovery key of %s: %+v, %v", when, v.Name, k, err)
				}
				uuids = append(uuids, v.UUID)
			}
			return uuids
		}
		before := volumes("after the bring-up")
		if len(before) == 0 {
			return nil
		}
		n, _ := l.World.Node(node)
		n.Metal().ClearTPM()
		d, err := l.Drift(ctx, observe.DriftOptions{Kinds: []string{"settings"}})
		if err != nil || len(d.Changes) != 1 || d.Changes[0].Node != node || strings.Count(d.Changes[0].Is, "the TPM was cleared or exchanged") != 3 {
			t.Errorf("drift: %+v, %v", d.Changes, err)
		}
		p, err := l.Plan(ctx, provision.PlanOptions{Refresh: true})
		if err != nil || !slices.Contains(ids(p), node+"/encryption.volumes") || strings.Contains(strings.Join(ids(p), " "), "install.") {
			t.Errorf("a plan after the TPM was cleared: %v, %v", ids(p), err)
		}
		if res, err := l.Apply(ctx, p); err != nil || !done(res, node) {
			return fmt.Errorf("enrolled again: %s: %w", findingOf(res, node), err)
		}
		if got := volumes("enrolled again"); !slices.Equal(got, before) {
			t.Errorf("enrolled again: volumes %v, and were %v", got, before)
		}
		_, res, err := l.Rebuild(ctx, &rebuild.Request{Nodes: []string{node}})
		if err != nil || !done(res, node) {
			return fmt.Errorf("reinstalled: %s: %w", findingOf(res, node), err)
		}
		after := volumes("reinstalled")
		if len(before) != 3 || len(after) != 3 || before[0] != after[0] || before[1] == after[1] || before[2] == after[2] {
			t.Errorf("reinstalled: volumes %v, and were %v", after, before)
		}
		all, err := l.Site.Keys.Recovery().List()
		if err != nil || len(all) != 8*3+2 {
			t.Errorf("%d recovery keys, %v", len(all), err)
		}
		return nil
	}
	sum, err := rehearsal.Run(context.Background(), withLayout(t, "  tpm = \"2.0\"\n"+threeDisks, layout, ""), o)
	if err != nil || len(sum.Accepted) != 8 {
		t.Errorf("accepted %v, quarantined %+v: %v", sum.Accepted, sum.Quarantined, err)
	}
}
