// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
)

// dumping is a fake with a log service that collects: the task of the last request to it
// ends at its third look, and makes an entry.
func dumping(state string, size int) (f *fake, asked *[]string) {
	f, asked = newFake(), &[]string{}
	ref := func(p string) map[string]any { return map[string]any{"@odata.id": p} }
	at := "/redfish/v1/Managers/BMC/LogServices"
	f.docs["/redfish/v1/Managers/BMC"]["LogServices"] = ref(at)
	f.docs[at] = map[string]any{"Members": []any{ref(at + "/SEL"), ref(at + "/Dump")}}
	f.docs[at+"/SEL"] = map[string]any{"Entries": ref(at + "/SEL/Entries")}
	f.docs[at+"/Dump"] = map[string]any{"Entries": ref(at + "/Dump/Entries"), "Actions": map[string]any{"#LogService.CollectDiagnosticData": map[string]any{"target": at + "/Dump/Collect",
		"DiagnosticDataType@Redfish.AllowableValues": []string{"OEM", "Manager"}, "OEMDiagnosticDataType@Redfish.AllowableValues": []string{"AllLogs"}}}}
	old := map[string]any{"Id": "1", "AdditionalDataURI": at + "/Dump/Entries/1/attachment"}
	f.docs[at+"/Dump/Entries"] = map[string]any{"Members": []any{old}}
	looks := 0
	f.hook = func(f *fake, w http.ResponseWriter, r *http.Request) bool {
		switch r.URL.Path {
		case at + "/Dump/Collect":
			b := make([]byte, 200)
			n, _ := r.Body.Read(b)
			*asked = append(*asked, string(b[:n]))
			w.Header().Set("Location", "/redfish/v1/TaskService/Tasks/7")
			w.WriteHeader(http.StatusAccepted)
		case "/redfish/v1/TaskService/Tasks/7":
			now := "Running"
			if looks++; looks > 2 {
				now = state
				f.docs[at+"/Dump/Entries"] = map[string]any{"Members": []any{old, map[string]any{"Id": "2", "AdditionalDataURI": at + "/Dump/Entries/2/attachment"}}}
			}
			fmt.Fprintf(w, `{"@odata.type": "#Task.v1_5_1.Task", "TaskState": %q, "Messages": [{"Message": "no space left"}]}`, now)
		case at + "/Dump/Entries/2/attachment":
			fmt.Fprint(w, strings.Repeat("d", size))
		default:
			return false
		}
		return true
	}
	return f, asked
}

func TestCollectDiagnostics(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		state string
		size  int
		want  string // of the error
	}{
		"well":      {"Completed", 9 << 20, ""}, // more than another answer may have
		"too large": {"Completed", 17 << 20, "longer than"},
		"no space":  {"Exception", 10, "the task ended as Exception: no space left"},
	} {
		f, asked := dumping(c.state, c.size)
		rig(t, f, nil, func(ctx context.Context, cl *Client) {
			_ = cl.Open(ctx)
			got, err := cl.CollectDiagnostics(ctx, 16<<20)
			if c.want == "" && (err != nil || len(got) != c.size) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s: %d bytes, %v", name, len(got), err)
			}
		})
		if len(*asked) != 1 || (*asked)[0] != `{"DiagnosticDataType":"Manager"}` {
			t.Errorf("%s: asked for %q", name, *asked)
		}
	}
}

// TestNoDiagnostics: a BMC without the action is an error of kind unsupported, and nothing
// is asked of it.
func TestNoDiagnostics(t *testing.T) {
	t.Parallel()
	f := newFake()
	rig(t, f, nil, func(ctx context.Context, c *Client) {
		_ = c.Open(ctx)
		if _, err := c.CollectDiagnostics(ctx, 1<<20); errkind.Of(err) != errkind.Unsupported {
			t.Errorf("%v", err)
		}
	})
	for _, w := range f.writes {
		if strings.Contains(w, "Collect") {
			t.Errorf("written: %q", f.writes)
		}
	}
}
