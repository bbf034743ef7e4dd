// SPDX-License-Identifier: Apache-2.0

package userdata

import (
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"#!/bin/sh\ntrue\n":                               "",
		"#! /usr/bin/python3 -u\nprint(1)\n":              "",
		"#cloud-config\nruncmd: [true]\n":                 "",
		"#cloud-config \r\n":                              "",
		"#!sh\n":                                          "its whole path",
		"true\n":                                          "neither that of a script",
		"#cloud-configuration\n":                          "neither that of a script",
		"#cloud-config\n- a\n- b\n":                       "no YAML with names and values",
		"#cloud-config\nruncmd: [true\n":                  "no YAML with names and values",
		"#!/bin/sh\n\x00":                                 "a byte that is 0",
		"#!/bin/sh\n" + strings.Repeat("true\n", Most/4):  "are the most",
		"Content-Type: multipart/mixed; boundary=\"x\"\n": "neither that of a script",
	} {
		got := Check(text)
		if want == "" && got != "" || want != "" && !strings.Contains(got, want) {
			t.Errorf("%.30q: %q, want %q", text, got, want)
		}
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		content string
		want    State
		why     string
	}{
		{"", Running, ""},
		{`{"digest":"sha256:1","boot":"b1","began":"2026-01-02T03:04:05Z"}`, Running, ""},
		{`{"digest":"sha256:1","boot":"b0","began":"2026-01-02T03:04:05Z"}`, Failed, "the node restarted while it ran"},
		{`{"boot":"b0","began":"2026-01-02T03:04:05Z","ended":"2026-01-02T03:05:05Z","exit":0}`, Well, ""},
		{`{"boot":"b0","began":"2026-01-02T03:04:05Z","ended":"2026-01-02T03:05:05Z","exit":3}`, Failed, "ended with status 3"},
		{`{"boot":"b0","began":"2026-01-02T03:04:05Z","ended":"2026-01-02T03:05:05Z","exit":0,"error":"it took longer than 30m"}`, Failed, "it took longer"},
		{`{`, Failed, "cannot be read"},
	} {
		var content []byte
		if c.content != "" {
			content = []byte(c.content)
		}
		if got, why := JudgeScript(content, "b1"); got != c.want || !strings.Contains(why, c.why) {
			t.Errorf("%s: %d %q, want %d %q", c.content, got, why, c.want, c.why)
		}
	}
	for _, c := range []struct {
		content string
		want    State
		why     string
	}{
		{"", Running, ""},
		{`{"v1": {"datasource": "DataSourceNoCloud [seed=/var/lib/cloud/seed/nocloud][dsmode=net]", "errors": []}}`, Well, ""},
		{`{"v1": {"datasource": "DataSourceNoCloud [seed=/var/lib/cloud/seed/nocloud][dsmode=net]", "errors": ["('scripts_user', RuntimeError('Runparts: 1 failures (runcmd) in 1 attempted commands'))"]}}`, Failed, "Runparts: 1 failures"},
		{`{"v1": {"datasource": "DataSourceNone", "errors": []}}`, Failed, "DataSourceNone"},
		{`null`, Failed, "its data source is"},
	} {
		var content []byte
		if c.content != "" {
			content = []byte(c.content)
		}
		if got, why := JudgeCloud(content); got != c.want || !strings.Contains(why, c.why) {
			t.Errorf("%s: %d %q, want %d %q", c.content, got, why, c.want, c.why)
		}
	}
}
