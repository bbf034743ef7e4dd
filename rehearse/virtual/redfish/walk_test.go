// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestEveryLinkAnswers follows every @odata.id from the root: each must be 200,
// JSON, of its own id, with what DSP0266 demands of every resource.
func TestEveryLinkAnswers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p Personality) {
		p.Quirks.Flaky403 = 0
		b := start(t, p, Options{})
		b.do(t, http.MethodPost, root+"/SessionService/Sessions", `{"UserName":"root","Password":"`+password+`"}`, "Anonymous: yes")
		b.do(t, http.MethodPost, root+"/UpdateService/Actions/UpdateService.SimpleUpdate", `{"ImageURI":"http://10.0.0.1/BIOS_2.0.bin"}`)
		b.c.Log("Critical", "Memory", "Uncorrectable ECC <DIMM A1>")
		seen := map[string]bool{}
		todo := []string{root}
		for len(todo) > 0 {
			path := todo[0]
			todo = todo[1:]
			if seen[path] {
				continue
			}
			seen[path] = true
			b.check(t, path, &todo)
		}
		if len(seen) < 60 {
			t.Errorf("only %d resources: %v", len(seen), slices.Sorted(maps.Keys(seen)))
		}
		t.Logf("%d resources", len(seen))
	})
}

// check reads one resource and adds what it refers to.
func (b *bmc) check(t *testing.T, path string, todo *[]string) {
	t.Helper()
	a := b.do(t, http.MethodGet, path, "")
	if a.status != http.StatusOK || a.body == nil {
		t.Errorf("%s: %d %s", path, a.status, a.raw)
		return
	}
	if got, _ := a.body["@odata.id"].(string); got != path {
		t.Errorf("%s: its own id is %q", path, got)
	}
	kind, _ := a.body["@odata.type"].(string)
	if !strings.HasPrefix(kind, "#") || a.body["Name"] == nil {
		t.Errorf("%s: type %q, name %v", path, kind, a.body["Name"])
	}
	if a.body["Id"] == nil && !strings.HasSuffix(kind, "Collection") {
		t.Errorf("%s: no Id", path)
	}
	if tag := a.header.Get("ETag"); tag == "" || tag != a.body["@odata.etag"] {
		t.Errorf("%s: ETag %q, @odata.etag %v", path, tag, a.body["@odata.etag"])
	}
	links(a.body, func(l string) {
		if !strings.Contains(l, "#") {
			*todo = append(*todo, l)
		}
	})
}

// links calls f with every reference and every action's target's resource.
func links(v any, f func(string)) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if id, ok := x.(string); ok && k == "@odata.id" {
				f(id)
			}
			links(x, f)
		}
	case []any:
		for _, x := range v {
			links(x, f)
		}
	}
}

func TestActionTargetsExist(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p Personality) {
		b := start(t, p, Options{})
		for _, path := range []string{b.system(p), root + "/Managers/" + p.Manager, root + "/Chassis/" + p.Chassis, root + "/UpdateService",
			root + "/" + p.Media.Parent + "/" + map[string]string{"Systems": p.System, "Managers": p.Manager}[p.Media.Parent] + "/VirtualMedia/" + p.Slots[0].ID} {
			actions, _ := b.do(t, http.MethodGet, path, "").body["Actions"].(map[string]any)
			if len(actions) == 0 {
				t.Errorf("%s has no actions", path)
			}
			for name, x := range actions {
				target, _ := x.(map[string]any)["target"].(string)
				if a := b.do(t, http.MethodGet, target, ""); a.status != http.StatusMethodNotAllowed || a.header.Get("Allow") != "POST" {
					t.Errorf("%s: GET of its target is %d, Allow %q", name, a.status, a.header.Get("Allow"))
				}
			}
		}
	})
}

func TestOutsideTheTree(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p Personality) {
		b := start(t, p, Options{})
		for path, want := range map[string]int{
			"/redfish": 200, root: 200, root + "/": 200, root + "/odata": 200, root + "/$metadata": 200,
			root + "/Nothing": 404, root + "/Systems/nobody": 404, root + "/Systems//": 200, "/": 404, "/redfish/v2": 404,
			root + "/Systems/" + p.System + "/LogServices/none/Entries": 404, root + "/Managers/" + p.Manager + "/LogServices/x": 404,
			root + "/Nobody/x/LogServices": 404, root + "/Systems/" + p.System + "/Bios/Wrong": 404, root + "x": 404,
			root + "/Registries/x/registry.json": 404, root + "/Registries/" + p.Registry + "/registry.json": 200,
		} {
			if a := b.do(t, http.MethodGet, path, ""); a.status != want {
				t.Errorf("%s: %d, want %d", path, a.status, want)
			}
		}
		for path, want := range map[string]int{"/redfish": 200, root: 200, root + "/odata": 200, root + "/Systems": 401, root + "/Nothing": 401} {
			if a := b.do(t, http.MethodGet, path, "", "Anonymous: yes"); a.status != want {
				t.Errorf("%s without log-in: %d, want %d", path, a.status, want)
			}
		}
	})
}
