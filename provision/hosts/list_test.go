// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseList(t *testing.T) {
	t.Parallel()
	list, diags := ParseList("nodes.txt", []byte("# rack 1\n\ngpu01\n  admin@10.0.0.11:2222\tgpu02 # two\r\n[fe80::1%eth0]:2201\n2001:db8::5 gpu04\n10.0.0.12:2222\n"))
	var got []string
	for _, h := range list {
		got = append(got, fmt.Sprintf("%s %s@%s", h.Name, h.User, h.Endpoint()))
	}
	want := []string{"gpu01 @gpu01:22", "gpu02 admin@10.0.0.11:2222", "fe80::1-eth0:2201 @[fe80::1%eth0]:2201", "gpu04 @[2001:db8::5]:22", "10.0.0.12:2222 @10.0.0.12:2222"}
	if len(diags) > 0 || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%v, got\n%s", diags, strings.Join(got, "\n"))
	}
}

// TestParseListErrors: all errors at once, each at its word.
func TestParseListErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                "1:1-1 No hosts",
		"# gpu01\n":                       "1:1-1 No hosts",
		"gpu01 a b\n":                     "1:9-10 Too many words",
		"gpu01\n  gpu01\n":                "2:3-8 Host named twice",
		"gpu01 a\ngpu02 a\n":              "2:7-8 Two hosts of one name",
		"-oProxyCommand=x\n":              "1:1-17 Host is neither name nor address",
		"-x@gpu01\n":                      "1:1-9 User name is not one",
		"gpu01:0\ngpü02:70000\ngpu03:x y": "1:1-8 Port is not one; 2:1-12 Port is not one; 3:1-8 Port is not one",
		"gpu01 a/b":                       "1:7-10 Name is not one of a node",
		"gpu01 a@b":                       "1:7-10 Name is not one of a node",
		"[::1\n":                          "",
	} {
		_, diags := ParseList("nodes.txt", []byte(text))
		var got []string
		for _, d := range diags {
			got = append(got, fmt.Sprintf("%d:%d-%d %s", d.Subject.Start.Line, d.Subject.Start.Column, d.Subject.End.Column, d.Summary))
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%q: got %q, want %q", text, strings.Join(got, "; "), want)
		}
	}
}

func FuzzParseList(f *testing.F) {
	f.Add([]byte("gpu01\nadmin@10.0.0.11:2222 gpu02 # two\n[::1]:22 x\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, diags := ParseList("nodes.txt", text)
		if len(list) == 0 && len(diags) == 0 {
			t.Error("neither hosts nor an error")
		}
		for _, h := range list {
			if h.Name == "" || strings.ContainsAny(h.Name, "/@ \n") || strings.HasPrefix(h.Addr, "-") || strings.HasPrefix(h.User, "-") || h.Port == 0 {
				t.Errorf("%+v", h)
			}
		}
	})
}
