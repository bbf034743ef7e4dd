// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
)

// Switch is all that is known of one switch, or of one port of it. The switch is not
// asked.
type Switch struct {
	Name    string `json:"name"`
	Port    string `json:"port,omitempty"` // that is asked about, such as net/leaf-1/17
	Fabric  string `json:"fabric,omitempty"`
	Kind    string `json:"kind,omitempty"` // of the fabric
	Tier    string `json:"tier,omitempty"`
	Model   string `json:"model,omitempty"`
	OS      string `json:"os,omitempty"`
	Address string `json:"address,omitempty"` // of its management port
	Login   string `json:"login,omitempty"`   // name; empty: it is not logged in to
	Rack    string `json:"rack,omitempty"`
	Unit    int    `json:"unit,omitempty"`

	Steps    []state.Step                `json:"steps"` // of this switch, the last end of each
	Journal  []state.Record              `json:"journal,omitempty"`
	Skipped  []state.Record              `json:"skipped"` // of the last run
	Active   []apply.StepStatus          `json:"active,omitempty"`
	Paces    map[plan.StepID]plan.Budget `json:"paces,omitempty"`
	Draining bool                        `json:"draining,omitempty"`
	Suspect  []stage.Finding             `json:"suspect"` // findings of other steps that name it as their cause
	Near     []stage.Finding             `json:"near"`    // findings that tell of it or of a cable in it
	Read     *SwitchRead                 `json:"read,omitempty"`
	Seen     *SwitchObservation          `json:"seen,omitempty"`  // by a look of a plan that was to be applied
	Sweep    *state.Step                 `json:"sweep,omitempty"` // of its InfiniBand fabric, that compared its cables last
	Cables   []Port                      `json:"cables"`          // Port is that of the switch, Heard what the node at the other end heard
	Last     *state.Run                  `json:"last,omitempty"`
}

// SwitchRead is how a switch was when its configuration was read last.
type SwitchRead struct {
	At       time.Time `json:"at"`
	Conforms bool      `json:"conforms"`
}

// SwitchObservation is what a look has shown that came after the step of a switch had ended.
type SwitchObservation struct {
	At       time.Time        `json:"at"`
	State    stage.Conformity `json:"state"`
	Evidence string           `json:"evidence,omitempty"`
}

// SwitchReader is a Backend that knows switches.
type SwitchReader interface {
	// Switch tells of a switch by its name, or of one of its ports.
	Switch(ctx context.Context, name string) (Switch, error)
}

// serveSwitch answers for a switch; its name is in the query, since it has slashes.
func serveSwitch(b Backend) http.HandlerFunc {
	return serveJSON(func(r *http.Request) (any, error) {
		t, ok := b.(SwitchReader)
		if !ok {
			return nil, errkind.New(errkind.Unsupported, "this owner tells nothing of switches").Do("Ask again when the run has ended.")
		}
		return t.Switch(r.Context(), r.URL.Query().Get("name"))
	})
}

// Switch asks for a switch's story.
func (c *Client) Switch(ctx context.Context, name string) (s Switch, err error) {
	return s, c.call(ctx, http.MethodGet, "/switch?name="+url.QueryEscape(name), nil, &s)
}
