// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		want       Fault
		err        string // part of it
	}{
		{name: "with a step", text: "kind=bmc-dead,node=n1,at=install.netboot", want: Fault{Kind: BMCDead, Node: "n1", At: "install.netboot"}},
		{name: "default step", text: "kind=pdu-trip,pdu=r1/a", want: Fault{Kind: PDUTrip, PDU: "r1/a", At: "install.write"}},
		{name: "two nodes", text: "kind=cable-swap,node=n1,with=n2,port=rail/1", want: Fault{Kind: CableSwap, Node: "n1", With: "n2", Port: "rail/1"}},
		{name: "a GPU", text: "kind=weak-hbm,node=n1,gpu=5", want: Fault{Kind: WeakHBM, Node: "n1", GPU: "5"}},
		{name: "unknown kind", text: "kind=bmc-ded,node=n1", err: `Did you mean "bmc-dead"`},
		{name: "missing node", text: "kind=bmc-dead", err: "needs node"},
		{name: "attribute of others", text: "kind=bmc-dead,node=n1,pdu=r1/a", err: `takes no "pdu"`},
		{name: "no value", text: "kind=bmc-dead,node", err: "is not NAME=VALUE"},
		{name: "unknown attribute", text: "kind=bmc-dead,nod=n1", err: "no attribute of a fault"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Parse(tt.text)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("got %v, want %q in it", err, tt.err)
				}
				return
			}
			if err != nil || got != tt.want {
				t.Errorf("got %+v, %v; want %+v", got, err, tt.want)
			}
		})
	}
}

func TestParseFile(t *testing.T) {
	t.Parallel()
	faults, diags := parseFile("f.hcl", []byte("fault \"bmc-dead\" {\n  node = \"n1\"\n}\nfault \"missing-dimm\" {\n  node = \"n2\"\n}\n"))
	if diags.HasErrors() || len(faults) != 2 || faults[1].Kind != MissingDIMM || faults[1].Node != "n2" || faults[0].Decl.Start.Line != 1 {
		t.Errorf("got %+v, %v", faults, diags)
	}
	for _, tt := range []struct {
		name, text, want string
		line             int
	}{
		{"unknown kind", "fault \"bmc-dead\" {\n  node = \"a\"\n}\nfault \"nic\" {\n}\n", "no kind of fault", 4},
		{"missing node", "\nfault \"bmc-dead\" {\n}\n", "needs node", 2},
		{"unknown attribute", "fault \"bmc-dead\" {\n  nod = \"a\"\n}\n", "nod", 2},
		{"unknown block", "faults \"bmc-dead\" {\n}\n", "faults", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, diags := parseFile("f.hcl", []byte(tt.text))
			found := false
			for _, d := range diags {
				found = found || strings.Contains(d.Summary+d.Detail, tt.want) && d.Subject != nil && d.Subject.Start.Line == tt.line
			}
			if !found {
				t.Errorf("got %v, want %q at line %d", diags, tt.want, tt.line)
			}
		})
	}
}

// TestPlaceOfStep: a fault knows where its step was written, so that one that does
// not exist is shown there.
func TestPlaceOfStep(t *testing.T) {
	t.Parallel()
	faults, diags := parseFile("f.hcl", []byte("fault \"bmc-dead\" {\n  node = \"n1\"\n  at   = \"drivers\"\n}\nfault \"bmc-dead\" {\n  node = \"n2\"\n}\n"))
	if diags.HasErrors() || len(faults) != 2 {
		t.Fatal(faults, diags)
	}
	if at := faults[0].AtDecl; at.Filename != "f.hcl" || at.Start.Line != 3 || at.Start.Column != 10 {
		t.Errorf("at %v", at)
	}
	if at := faults[1].AtDecl; at.Start.Line == 3 || at.Start.Column > 1 {
		t.Errorf("one without a step is at %v", at)
	}
}

func TestEveryRowIsWhole(t *testing.T) {
	t.Parallel()
	if len(rows) != 76 {
		t.Errorf("%d kinds", len(rows))
	}
	for _, r := range rows {
		if r.Does == "" || r.Suspects == "" {
			t.Errorf("%s says too little", r.Kind)
		}
	}
}

func FuzzParseFile(f *testing.F) {
	f.Add([]byte("fault \"bmc-dead\" {\n  node = \"n1\"\n}\n"))
	f.Fuzz(func(_ *testing.T, src []byte) { parseFile("f.hcl", src) })
}

func FuzzParse(f *testing.F) {
	f.Add("kind=bmc-dead,node=n1")
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := Parse(text); err == nil && got.Kind == "" {
			t.Errorf("%q is a fault without a kind", text)
		}
	})
}
