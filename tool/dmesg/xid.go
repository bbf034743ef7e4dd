// SPDX-License-Identifier: Apache-2.0

package dmesg

// Xid is what is known of one number of NVRM's Xid messages.
type Xid struct {
	Level   Level
	Meaning string
	Action  string
}

// The actions that xids ask for.
const (
	doReset   = "Reset the GPU or reboot the node; if it comes again, have the GPU replaced."
	doReplace = "Have the GPU, or the board that it sits on, replaced."
	doLink    = "Reset the GPUs of this NVLink domain; if it comes again, look at the NVSwitch, the GPU's seat and the board."
	doProgram = "Look at the program that ran; if several programs meet it on this GPU, test the GPU."
	doDriver  = "Reboot the node; if it comes again, change the version of the driver."
	doPCIe    = "Power the node off and on, reseat the GPU's board and look at its power and its riser."
)

// xids is what NVIDIA documents of Xid numbers (Xid Errors, docs.nvidia.com, of
// drivers 535 to 580), with the level that it has when a node is accepted: there
// is no user's program yet, so what hardware may cause is the hardware's.
var xids = map[int]Xid{
	8:   {Degraded, "the GPU stopped processing", doReset},
	13:  {Application, "graphics engine exception", doProgram},
	31:  {Application, "a program touched memory that is not its own", doProgram},
	32:  {Application, "invalid or corrupted push buffer", doProgram},
	38:  {Degraded, "driver firmware error", doDriver},
	43:  {Application, "the GPU stopped processing a program", doProgram},
	44:  {Degraded, "fault while changing between programs", doReset},
	45:  {Application, "programs were ended because of an earlier error", "Look at the Xid before it."},
	46:  {Degraded, "the GPU stopped processing", doReset},
	48:  {Fatal, "uncorrectable memory error (double bit)", doReset},
	54:  {Fatal, "auxiliary power is not connected", "Connect the power cables of the GPU's board."},
	56:  {Degraded, "display engine error", doReset},
	57:  {Fatal, "the memory interface could not be set up", doReplace},
	58:  {Fatal, "the memory interface is not stable", doReplace},
	61:  {Fatal, "the GPU's microcontroller stopped at a breakpoint", doReset},
	62:  {Fatal, "the GPU's microcontroller halted", doReset},
	63:  {Degraded, "a page was retired or a row remapped; it takes effect at the next reset", doReset},
	64:  {Fatal, "a page could not be retired or a row not remapped", doReplace},
	65:  {Degraded, "video processor exception", doReset},
	66:  {Degraded, "illegal access by the driver", doDriver},
	67:  {Degraded, "illegal access by the driver", doDriver},
	68:  {Degraded, "exception of a video decoder", doReset},
	69:  {Degraded, "graphics engine class error", doReset},
	73:  {Degraded, "exception of a video encoder", doReset},
	74:  {Fatal, "NVLink error", doLink},
	78:  {Degraded, "a virtual GPU did not start", doDriver},
	79:  {Fatal, "the GPU has fallen off the bus", doPCIe},
	80:  {Degraded, "corrupted data was sent to the GPU", doPCIe},
	81:  {Degraded, "VGA subsystem error", doReset},
	92:  {Degraded, "many corrected memory errors", doReset},
	93:  {Notice, "InfoROM is being written", ""},
	94:  {Degraded, "uncorrectable memory error, contained in one program", doReset},
	95:  {Fatal, "uncorrectable memory error, not contained", doReset},
	109: {Degraded, "changing between programs took too long", doReset},
	110: {Fatal, "security fault", doReplace},
	119: {Fatal, "the GPU's system processor (GSP) did not answer", doPCIe},
	120: {Fatal, "error of the GPU's system processor (GSP)", doPCIe},
	121: {Fatal, "error of the link between CPU and GPU (C2C)", doReset},
	122: {Degraded, "the board's flash could not be read", doReplace},
	123: {Degraded, "the board's flash could not be written", doReplace},
	124: {Degraded, "the board's flash could not be erased", doReplace},
	125: {Degraded, "InfoROM failure", doReplace},
	126: {Degraded, "InfoROM failure", doReplace},
	136: {Fatal, "an NVLink could not be trained", doLink},
	137: {Application, "a program touched memory of another GPU that is not its own", doProgram},
	140: {Fatal, "memory error that could not be recovered", doReset},
	143: {Fatal, "the GPU could not be initialised", doPCIe},
	144: {Fatal, "NVLink 5 error (SAW)", doLink},
	145: {Fatal, "NVLink 5 error (RLW)", doLink},
	146: {Fatal, "NVLink 5 error (TLW)", doLink},
	147: {Fatal, "NVLink 5 error (TREX)", doLink},
	148: {Fatal, "NVLink 5 error (NVLPW)", doLink},
	149: {Fatal, "NVLink 5 error (NETIR): a link failed", doLink},
	150: {Fatal, "NVLink 5 error (MSE)", doLink},
	151: {Degraded, "encryption keys could not be changed", doReset},
	154: {Degraded, "the recovery action of the GPU changed", "Do what nvidia-smi -q shows as GPU Recovery Action."},
	155: {Fatal, "NVLink error that the driver defined", doLink},
	156: {Degraded, "a part of the GPU was retired; it takes effect at the next reset", doReset},
	157: {Fatal, "a part of the GPU could not be retired", doReplace},
	158: {Fatal, "the GPU timed out", doReset},
	160: {Degraded, "a memory channel was retired; it takes effect at the next reset", doReset},
	161: {Fatal, "a memory channel could not be retired", doReplace},
	162: {Notice, "power smoothing changed", ""},
	167: {Fatal, "PCIe timeout", doPCIe},
	168: {Fatal, "error in protected memory", doReset},
	171: {Fatal, "uncorrectable error of DRAM", doReset},
	172: {Fatal, "uncorrectable error of SRAM", doReset},
}

// lookupXid returns what is known of a number; one that is not in the table counts as a
// degraded GPU until somebody has looked.
func lookupXid(code int) Xid {
	if x, ok := xids[code]; ok {
		return x
	}
	return Xid{Degraded, "an Xid that is not in the table", "Look it up in NVIDIA's list of Xid errors."}
}
