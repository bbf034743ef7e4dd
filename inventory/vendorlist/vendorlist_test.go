// SPDX-License-Identifier: Apache-2.0

package vendorlist

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write what comes out into the cases")

func TestMatch(t *testing.T) {
	t.Parallel()
	want := map[Field][]string{
		Rack:            {"Rack", "rack", "Rack Name", "Cabinet", "CABINET ID", "Rack #", "Rack No."},
		Unit:            {"Unit", "U", "RU", "U Position", "U-Pos", "Rack Unit", "RackU", "Start U", "Elevation", "Position"},
		Serial:          {"Serial", "S/N", "Serial No", "Serial Number", "Service Tag", "Chassis S/N", "Chassis Serial #", "SN", "System Serial Number", "SerialNumber", "Node S/N"},
		BMCMAC:          {"BMC MAC", "IPMI MAC", "iDRAC MAC", "iLO MAC Address", "iDRAC NIC MAC Address", "BMC_MAC", "bmcMac", "Mgmt MAC", "MAC Address (BMC)", "IPMI LAN MAC", "Management MAC Address", "BMC Dedicated LAN MAC"},
		BootMAC:         {"Boot MAC", "LAN1 MAC", "LAN 1 MAC", "PXE MAC", "MAC Address", "MAC", "NIC1 MAC Address", "eth0 MAC", "MAC1", "PXE NIC MAC"},
		FactoryPassword: {"Factory Password", "BMC Password", "IPMI Unique Password", "Default PWD", "Password", "ADMIN password"},
		UUID:            {"UUID", "System UUID", "SMBIOS UUID"},
		Name:            {"Name", "Hostname", "Host Name", "Node", "Node Name"},
		"":              {"", "Model", "Qty", "PO Number", "Motherboard S/N", "MB Serial", "PSU1 Serial Number", "LAN2 MAC", "NIC 2 MAC Address", "GPU Serial", "IB GUID", "HCA MAC", "BMC IP", "IPMI User", "Rack Serial Number", "Weight", "U Height", "Asset Tag", "Carton", "eth1 mac"},
	}
	for f, headers := range want {
		for _, h := range headers {
			if got, sure := matchHeader(h); got != f {
				t.Errorf("%q: got %q (%d), want %q", h, got, sure, f)
			}
		}
	}
}

// TestSynonymsAreApart wants every synonym to be of one field.
func TestSynonymsAreApart(t *testing.T) {
	t.Parallel()
	of := map[string]Field{}
	for f, list := range synonyms {
		for _, s := range list {
			if was, again := of[s]; again {
				t.Errorf("%q is %s and %s", s, was, f)
			}
			if s != normalHeader(s) {
				t.Errorf("%q is not in the form that is compared, %q", s, normalHeader(s))
			}
			of[s] = f
		}
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	c := converter{options: Options{Racks: map[string]string{"Rack 1": "r01"}}}
	tests := []struct {
		name string
		read func(string) (string, string)
		in   string
		want string // "!": a problem
	}{
		{"unit", unitText, "12", "12"}, {"unit", unitText, "U12", "12"}, {"unit", unitText, "12U", "12"}, {"unit", unitText, "RU 07", "7"}, {"unit", unitText, "u01", "1"},
		{"unit", unitText, "12.0", "12"}, {"unit", unitText, "U12-U19", "12"}, {"unit", unitText, "19-12", "12"}, {"unit", unitText, "9 - 16 U", "9"},
		{"unit", unitText, "0", "!"}, {"unit", unitText, "64", "!"}, {"unit", unitText, "12.5", "!"}, {"unit", unitText, "top", "!"}, {"unit", unitText, "-3", "!"},
		{"mac", checkMAC, "02-00-5E-10-00-01", "02:00:5e:10:00:01"}, {"mac", checkMAC, "0200.5e10.0001", "02:00:5e:10:00:01"}, {"mac", checkMAC, "02005E100001", "02:00:5e:10:00:01"},
		{"mac", checkMAC, "02:00:5e:10:00:01", "02:00:5e:10:00:01"}, {"mac", checkMAC, "02 00 5e 10 00 01", "02:00:5e:10:00:01"},
		{"mac", checkMAC, "02:00:5e:10:00", "!"}, {"mac", checkMAC, "N/A", "!"}, {"mac", checkMAC, "00:00:00:00:00:00", "!"}, {"mac", checkMAC, "ff:ff:ff:ff:ff:ff", "!"}, {"mac", checkMAC, "01:00:5e:10:00:01", "!"},
		{"serial", checkSerial, "S452361X3A09876", "S452361X3A09876"}, {"serial", checkSerial, "00123", "00123"}, {"serial", checkSerial, "N/A", "N/A"}, {"serial", checkSerial, "12", "!"}, {"serial", checkSerial, "a b", "!"},
		{"uuid", checkUUID, "{4C4C4544-0035-3510-8052-B4C04F4D3732}", "4c4c4544-0035-3510-8052-b4c04f4d3732"}, {"uuid", checkUUID, "4C4C4544003535108052B4C04F4D3732", "4c4c4544-0035-3510-8052-b4c04f4d3732"}, {"uuid", checkUUID, "4c4c", "!"},
		{"name", checkName, "GPU-001", "gpu-001"}, {"name", checkName, "gpu_1", "!"}, {"rack", c.rack, "r01", "r01"}, {"rack", c.rack, "Rack 1", "r01"}, {"rack", c.rack, "Rack 2", "!"},
		{"password", checkPassword, "=A+b,\"c", "=A+b,\"c"}, {"password", checkPassword, "a\x00b", "!"},
	}
	for _, tt := range tests {
		got, wrong := tt.read(tt.in)
		if wrong != "" {
			got = "!"
		}
		if got != tt.want {
			t.Errorf("%s %q: got %q (%s), want %q", tt.name, tt.in, got, wrong, tt.want)
		}
	}
}

func TestPlain(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{`="00123"`: "00123", "'00123": "00123", " x\u00a0": "x", `="a""b"`: `a"b`, "": "", "'": "", `=""`: ""} {
		if got := trimCell(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// TestEncodings reads one list as it is saved by different programs.
func TestEncodings(t *testing.T) {
	t.Parallel()
	const text = "Rack,U,S/N,BMC MAC,MAC\r\nr01,U1,SN001,02-00-00-00-00-01,02-00-00-00-01-01\r\n"
	units := utf16.Encode([]rune(strings.ReplaceAll(text, ",", "\t")))
	little, big := []byte{0xff, 0xfe}, []byte{0xfe, 0xff}
	for _, u := range units {
		little, big = append(little, byte(u), byte(u>>8)), append(big, byte(u>>8), byte(u))
	}
	for name, raw := range map[string][]byte{
		"plain": []byte(text), "BOM": []byte("\xef\xbb\xbf" + text), "semicolons": []byte(strings.ReplaceAll(text, ",", ";")), "tabs": []byte(strings.ReplaceAll(text, ",", "\t")),
		"sep": []byte("sep=;\r\n" + strings.ReplaceAll(text, ",", ";")), "UTF-16 LE": little, "UTF-16 BE": big,
		"titles":       []byte("Packing list;;;\r\nOrder 4711, 1 node;;;\r\n;;;\r\n" + strings.ReplaceAll(text, ",", ";") + ";;;\r\n"),
		"Windows-1252": []byte("Gestell\xfc,,,,\r\n" + text),
	} {
		l, err := Read(raw)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		m, questions, problems := l.Columns(nil)
		if len(questions)+len(problems) > 0 {
			t.Errorf("%s: %+v %+v", name, questions, problems)
			continue
		}
		out, problems := l.Convert(m, Options{})
		if len(problems) > 0 {
			t.Errorf("%s: %+v", name, problems)
			continue
		}
		if got, want := string(out.Bytes()), "rack,unit,serial,bmc_mac,boot_mac\nr01,1,SN001,02:00:00:00:00:01,02:00:00:00:01:01\n"; got != want {
			t.Errorf("%s: got\n%s", name, got)
		}
	}
}

func TestRefusedFiles(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{"xlsx": "PK\x03\x04...", "xls": "\xd0\xcf\x11\xe0", "zero bytes": "a,b\x00", "empty": "", "one column": "a\nb\n", "quotation mark": "a,b\n\"c,d\ne,f\n"} {
		if l, err := Read([]byte(raw)); err == nil {
			t.Errorf("%s was read: %+v", name, l)
		}
	}
}

// TestCases converts the list of every case and compares the columns, questions,
// problems and manifest.
func TestCases(t *testing.T) {
	t.Parallel()
	cases, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, path := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			a, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var raw, want []byte
			asked := map[Field]string{}
			o := Options{Racks: map[string]string{}}
			for _, f := range a.Files {
				switch f.Name {
				case "list.csv":
					raw = f.Data
				case "want":
					want = f.Data
				case "options":
					for _, w := range strings.Fields(string(f.Data)) {
						key, value, _ := strings.Cut(w, "=")
						switch key {
						case "allow-missing":
							o.AllowMissing = true
						case "keep":
							o.Keep = append(o.Keep, value)
						default:
							asked[Field(key)] = strings.ReplaceAll(value, "_", " ")
						}
					}
				}
			}
			got := outcome(raw, asked, o)
			if *update {
				a.Files = slices.DeleteFunc(a.Files, func(f txtar.File) bool { return f.Name == "want" })
				a.Files = append(a.Files, txtar.File{Name: "want", Data: []byte(got)})
				if err := os.WriteFile(path, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(want) {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

func outcome(raw []byte, asked map[Field]string, o Options) string {
	l, err := Read(raw)
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	var b strings.Builder
	m, questions, problems := l.Columns(asked)
	for _, f := range Fields() {
		if i, ok := m[f]; ok {
			fmt.Fprintf(&b, "%s = %q\n", f, l.Header[i])
		}
	}
	fmt.Fprintf(&b, "unused %q\n", l.Unused(m, o.Keep))
	for _, q := range questions {
		fmt.Fprintf(&b, "? %s %+v\n", q.Field, q.Candidates)
	}
	if len(questions)+len(problems) == 0 {
		var out *Manifest
		if out, problems = l.Convert(m, o); out != nil {
			fmt.Fprintf(&b, "%d left out\n%s", l.Left, out.Bytes())
		}
	}
	for _, p := range problems {
		fmt.Fprintf(&b, "! %d %q %s\n", p.Line, p.Column, p.Text)
	}
	return b.String()
}

func TestChanges(t *testing.T) {
	t.Parallel()
	before, err := ReadManifest([]byte("rack,unit,serial,bmc_mac,boot_mac,factory_password,owner\nr01,1,SN001,a,b,old,alpha\nr01,2,SN002,c,d,same,beta\n"))
	if err != nil {
		t.Fatal(err)
	}
	is, err := ReadManifest([]byte("rack,unit,serial,bmc_mac,boot_mac,factory_password\nr01,3,SN001,a,b,new\nr02,1,SN003,e,f,x\n"))
	if err != nil {
		t.Fatal(err)
	}
	is.Keep(before)
	var got []string
	for _, c := range is.Changes(before) {
		got = append(got, c.String())
	}
	want := []string{"~ SN001 unit: 1 -> 3", "~ SN001 factory_password", "+ SN003 (rack r02, unit 1)", "- SN002 (rack r01, unit 2)"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := string(is.Bytes()), "rack,unit,serial,bmc_mac,boot_mac,factory_password,owner\nr01,3,SN001,a,b,new,alpha\nr02,1,SN003,e,f,x,\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if again := is.Changes(is); len(again) > 0 {
		t.Errorf("a manifest differs from itself: %v", again)
	}
	if _, err := ReadManifest([]byte("a,b\n1,2\n")); err == nil {
		t.Error("a file without serials was read as a manifest")
	}
}

// FuzzRead wants no panic, and that what is written is read again as it was.
func FuzzRead(f *testing.F) {
	f.Add([]byte("Rack;U;S/N;BMC MAC;MAC;Password\nr01;U1;SN001;02-00-00-00-00-01;02-00-00-00-01-01;=x\n"))
	f.Add([]byte("\xff\xfea\x00,\x00b\x00"))
	f.Add([]byte("sep=\t\nrack\tunit\tserial\n\"a\nb\"\t1-2\t'x"))
	f.Add([]byte("title,,\n\nMAC,MAC,SN\n,,\n1E+5,x,y\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		l, err := Read(raw)
		if err != nil {
			return
		}
		m, questions, _ := l.Columns(nil)
		for _, q := range questions {
			m[q.Field] = q.Candidates[0].Column
		}
		out, problems := l.Convert(m, Options{AllowMissing: true})
		if (out == nil) == (len(problems) == 0) {
			t.Fatalf("manifest %v with %d problems", out != nil, len(problems))
		}
		if out == nil {
			return
		}
		again, err := ReadManifest(out.Bytes())
		if err != nil {
			if !out.Has(Serial) {
				return
			}
			t.Fatalf("%v\n%s", err, out.Bytes())
		}
		if changes := again.Changes(out); len(changes) > 0 {
			t.Fatalf("read again it differs: %v\n%s", changes, out.Bytes())
		}
	})
}
