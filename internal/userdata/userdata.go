// SPDX-License-Identifier: Apache-2.0

// Package userdata knows the user_data of a host block: its two forms, the files in which a
// node has it, and what is kept there of how it ended. It is pure. Names of files are
// relative to the root of the system.
package userdata

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Form is who reads user data.
type Form uint8

// The forms.
const (
	None        Form = iota
	Script           // "#!": a program, which ironrail's agent runs once
	CloudConfig      // "#cloud-config": settings for cloud-init, which the image has to have
)

// Most is the length that user data may have, in bytes.
const Most = 256 << 10

// FormOf returns the form of user data by its first line; None of an empty text.
func FormOf(text string) Form {
	first, _, _ := strings.Cut(text, "\n")
	switch {
	case strings.HasPrefix(first, "#!"):
		return Script
	case strings.TrimRight(first, " \t\r") == "#cloud-config":
		return CloudConfig
	}
	return None
}

// Check says what is wrong with user data, in words; empty: nothing is.
func Check(text string) string {
	switch form := FormOf(text); {
	case len(text) > Most:
		return fmt.Sprintf("it has %d bytes, and %d are the most", len(text), Most)
	case strings.ContainsRune(text, 0):
		return "it has a byte that is 0"
	case form == None:
		return `its first line is neither that of a script, such as "#!/bin/sh", nor "#cloud-config"`
	case form == Script && !strings.HasPrefix(strings.TrimSpace(text[2:]), "/"):
		return `its first line names no program by its whole path, such as "#!/bin/sh"`
	case form == CloudConfig:
		var content map[string]any
		if err := yaml.Unmarshal([]byte(text), &content); err != nil {
			return "it is no YAML with names and values: " + strings.ReplaceAll(strings.TrimPrefix(err.Error(), "yaml: "), "\n", " ")
		}
	}
	return ""
}

// Digest distinguishes user data in a few letters, without showing it.
func Digest(text string) string {
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:6])
}

// Files of a script.
const (
	ScriptFile = "etc/ironrail/user-data"
	RecordFile = "var/lib/ironrail/user-data.json"
	Unit       = "ironrail-user-data.service"
	UnitFile   = "etc/systemd/system/" + Unit
	UnitWanted = "etc/systemd/system/multi-user.target.wants/" + Unit
)

// Limit ends a script that hangs.
const Limit = 30 * time.Minute

// UnitText is the content of UnitFile. The agent bounds the script, so that systemd does not.
const UnitText = `# Written by ironrail: user_data of the host block runs once, at the first start of the installed system.
[Unit]
Description=User data of the site (ironrail)
Wants=network-online.target
After=network-online.target time-sync.target
ConditionPathExists=!/` + RecordFile + `

[Service]
Type=exec
ExecStart=/usr/local/sbin/ironrail-agent user-data

[Install]
WantedBy=multi-user.target
`

// Record is how a script ended. One without Ended runs, or was cut off by a restart.
type Record struct {
	Digest string    `json:"digest"`
	Boot   string    `json:"boot"` // id of the boot in which it began
	Began  time.Time `json:"began"`
	Ended  time.Time `json:"ended,omitzero"`
	Exit   int       `json:"exit"`             // 128 and the signal that ended it
	Error  string    `json:"error,omitempty"`  // why it did not end by itself, or could not be started
	Output string    `json:"output,omitempty"` // the end of what it printed
}

// Status is the exit status that a record stands for.
func (r Record) Status() int {
	if r.Error != "" && r.Exit == 0 {
		return 1
	}
	return r.Exit
}

// Files of cloud-init.
const (
	cloudDir      = "etc/cloud"
	CloudOff      = cloudDir + "/cloud-init.disabled"
	CloudSettings = cloudDir + "/cloud.cfg.d/99-ironrail.cfg"
	SeedDir       = "var/lib/cloud/seed/nocloud" // of its data source NoCloud
	SeedUserData  = SeedDir + "/user-data"
	SeedMetaData  = SeedDir + "/meta-data"
	ResultFile    = "var/lib/cloud/data/result.json" // is there once cloud-init has ended
)

// CloudProgram is there where a system has cloud-init.
const CloudProgram = "usr/bin/cloud-init"

// CloudText is the content of CloudSettings: cloud-init reads the seed alone, and leaves what
// ironrail sets. What user data itself says comes after it.
const CloudText = `# Written by ironrail, which sets the name, the addresses, the keys and the disks of this node.
datasource_list: [NoCloud, None]
network: {config: disabled}
preserve_hostname: true
manage_etc_hosts: false
ssh_deletekeys: false
ssh_genkeytypes: [ed25519]
locale: false
disable_root: false
users: []
growpart: {mode: "off"}
resize_rootfs: false
apt: {preserve_sources_list: true}
`

// MetaData is the content of SeedMetaData. Another instance is another first boot to cloud-init.
func MetaData(node, text string) string {
	return fmt.Sprintf("instance-id: ironrail-%s-%s\nlocal-hostname: %s\n", node, strings.TrimPrefix(Digest(text), "sha256:"), node)
}

// State is how far user data is on a node.
type State uint8

// The states.
const (
	Absent  State = iota // the node was given none
	Running              // or not begun yet
	Well
	Failed
)

// JudgeScript judges the record of a script; content is nil where there is none. boot is the id
// of the node's present boot.
func JudgeScript(content []byte, boot string) (State, string) {
	if content == nil {
		return Running, ""
	}
	var r Record
	switch err := json.Unmarshal(content, &r); {
	case err != nil:
		return Failed, fmt.Sprintf("/%s cannot be read: %v", RecordFile, err)
	case r.Ended.IsZero() && r.Boot == boot:
		return Running, ""
	case r.Ended.IsZero():
		return Failed, "user data was cut off: the node restarted while it ran"
	case r.Error != "":
		return Failed, "user data failed: " + r.Error
	case r.Exit != 0:
		return Failed, fmt.Sprintf("user data ended with status %d", r.Exit)
	}
	return Well, ""
}

// JudgeCloud judges what cloud-init left in ResultFile; content is nil where it is not there.
// Its source is cloud-init's own documentation, "Status and result files".
func JudgeCloud(content []byte) (State, string) {
	if content == nil {
		return Running, ""
	}
	var r struct {
		V1 struct {
			DataSource string   `json:"datasource"`
			Errors     []string `json:"errors"`
		} `json:"v1"`
	}
	switch err := json.Unmarshal(content, &r); {
	case err != nil:
		return Failed, fmt.Sprintf("/%s cannot be read: %v", ResultFile, err)
	case len(r.V1.Errors) > 0:
		return Failed, "cloud-init failed: " + strings.Join(r.V1.Errors, "; ")
	case !strings.Contains(r.V1.DataSource, "NoCloud"):
		return Failed, fmt.Sprintf("cloud-init did not read the user data of the site: its data source is %q", r.V1.DataSource)
	}
	return Well, ""
}
