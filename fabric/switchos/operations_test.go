// SPDX-License-Identifier: Apache-2.0

package switchos

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/fabric/switchos/sonic"
)

// TestPreview: what a plan says without asking is what the switch's own step would do,
// by what was read last; nothing is told where nothing is remembered.
func TestPreview(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	leaf := p.kind.managed(p.f)[0]
	st := plan.Step{ID: StepID(leaf.Switch, p.f), Subject: Of(leaf.Switch)}
	at := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	told := func() Preview {
		t.Helper()
		f, ok := p.kind.Preview(p, st)
		if !ok || !slices.Contains(f.Tables(), "PORT_QOS_MAP") {
			t.Fatalf("%+v, %t", f, ok)
		}
		return f
	}
	seenAt := func() {
		f := p.facts[configFact.Of(st.Subject)]
		f.Observed = at
		p.facts[f.Key] = f
	}
	seenAt()
	if f := told(); len(f.Operations) > 0 || !f.Read.Equal(at) {
		t.Errorf("as it should be: %+v", f)
	}
	port := leaf.Ports[0].Name
	p.read(t, leaf, func(c sonic.Config) {
		c["PORT"][port]["mtu"], c["PORT_QOS_MAP"][port]["pfc_enable"] = "1500\x1b[2J", "3,5"
		delete(c["PORT"][port], "admin_status")
		delete(c["QUEUE"], port+"|0")
		c.Set("BGP_NEIGHBOR", "default|10.0.0.9", sonic.Entry{"asn": "1", "auth_password": "not-a-secret"})
		c.Set("TACPLUS", "global", sonic.Entry{"passkey": "not-a-secret"})
	})
	seenAt()
	want := []plan.Operation{
		{Do: plan.Adds, Table: "PORT", Key: port, Field: "admin_status", To: "up"},
		{Do: plan.Changes, Table: "PORT", Key: port, Field: "mtu", From: `1500\x1b[2J`, To: "9100"},
		{Do: plan.Changes, Table: "PORT_QOS_MAP", Key: port, Field: "pfc_enable", From: "3,5", To: "3"},
		{Do: plan.Adds, Table: "QUEUE", Key: port + "|0", To: "scheduler=ROCE_OTHER"},
	}
	if f := told(); !slices.Equal(f.Operations, want) || !f.Read.Equal(at) {
		t.Errorf("got  %+v\nwant %+v", f.Operations, want)
	}
	kept, err := configFact.Get(p.facts[configFact.Of(st.Subject)])
	if err != nil {
		t.Fatal(err)
	}
	have, err := kept.config()
	if text := fmt.Sprint(have); err != nil || strings.Contains(text, "not-a-secret") || have["BGP_NEIGHBOR"]["default|10.0.0.9"]["asn"] != "1" {
		t.Errorf("%v: %s", err, text)
	}

	// A port that may no longer pause anything.
	for _, s := range p.kind.managed(p.f) {
		s.Lossless.PFC = false
	}
	f := told()
	if i := slices.IndexFunc(f.Operations, func(o plan.Operation) bool { return o.Do == plan.Removes }); i < 0 || f.Operations[i].Field != "pfc_enable" || f.Operations[i].From != "3,5" || f.Operations[i].To != "" {
		t.Errorf("%+v", f.Operations)
	}

	for name, spoil := range map[string]func(){
		"damaged": func() {
			f := p.facts[configFact.Of(st.Subject)]
			f.Value = []byte(`{"gzip":"AAAA"}`)
			p.facts[f.Key] = f
		},
		"it was too big": func() { f, _ := configFact.New(st.Subject, Remembered{}, ""); p.facts[f.Key] = f },
		"never read":     func() { delete(p.facts, configFact.Of(st.Subject)) },
	} {
		if spoil(); len(told().Operations) > 0 || !told().Read.IsZero() {
			t.Errorf("%s: %+v", name, told())
		}
	}
	if _, ok := p.kind.Preview(p, plan.Step{ID: "n1/fabric.x"}); ok {
		t.Error("the step of a node is taken for one of a switch")
	}
}

// TestRememberIsBounded: a switch that has more than any has is not kept in the state.
func TestRememberIsBounded(t *testing.T) {
	t.Parallel()
	c := sonic.Config{}
	for i := range 12_000 {
		c.Set("PORT", fmt.Sprintf("Ethernet%d", i), sonic.Entry{"description": fmt.Sprintf("%x", sha256.Sum256([]byte{byte(i), byte(i >> 8)}))})
	}
	if r := packConfig(c); r.Gzip != nil {
		t.Errorf("%d bytes", len(r.Gzip))
	}
	small := sonic.Config{"PORT": {"Ethernet0": {"mtu": "9100"}}}
	if have, err := packConfig(small).config(); err != nil || !maps.Equal(have["PORT"]["Ethernet0"], small["PORT"]["Ethernet0"]) {
		t.Errorf("%v, %v", have, err)
	}
}
