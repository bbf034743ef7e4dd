// SPDX-License-Identifier: Apache-2.0

package recognise

import (
	"slices"

	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/amdsmi"
	"github.com/ironrail/ironrail/tool/dcgmi"
	"github.com/ironrail/ironrail/tool/dmesg"
	"github.com/ironrail/ironrail/tool/ibnetdiscover"
	"github.com/ironrail/ironrail/tool/mlnxqos"
	"github.com/ironrail/ironrail/tool/mlxconfig"
	"github.com/ironrail/ironrail/tool/nccllog"
	"github.com/ironrail/ironrail/tool/nccltests"
	"github.com/ironrail/ironrail/tool/nvbandwidth"
	"github.com/ironrail/ironrail/tool/nvidiasmi"
	"github.com/ironrail/ironrail/tool/perftest"
	"github.com/ironrail/ironrail/tool/recognise/internal/ethtool"
	"github.com/ironrail/ironrail/tool/recognise/internal/fabricmanager"
	"github.com/ironrail/ironrail/tool/recognise/internal/ibdev2netdev"
	"github.com/ironrail/ironrail/tool/recognise/internal/ibdiagnet"
	"github.com/ironrail/ironrail/tool/recognise/internal/iblinkinfo"
	"github.com/ironrail/ironrail/tool/recognise/internal/ibqueryerrors"
	"github.com/ironrail/ironrail/tool/recognise/internal/ibstat"
	"github.com/ironrail/ironrail/tool/recognise/internal/ibswinfo"
	"github.com/ironrail/ironrail/tool/recognise/internal/ibverbs"
	"github.com/ironrail/ironrail/tool/recognise/internal/imexctl"
	"github.com/ironrail/ironrail/tool/recognise/internal/lldpctl"
	"github.com/ironrail/ironrail/tool/recognise/internal/lspci"
	"github.com/ironrail/ironrail/tool/recognise/internal/mlxlink"
	"github.com/ironrail/ironrail/tool/recognise/internal/opensmlog"
	"github.com/ironrail/ironrail/tool/recognise/internal/perfquery"
	"github.com/ironrail/ironrail/tool/recognise/internal/rdmalink"
	"github.com/ironrail/ironrail/tool/recognise/internal/rocminfo"
	"github.com/ironrail/ironrail/tool/recognise/internal/rocmsmi"
	"github.com/ironrail/ironrail/tool/recognise/internal/saquery"
	"github.com/ironrail/ironrail/tool/recognise/internal/showgids"
	"github.com/ironrail/ironrail/tool/recognise/internal/sminfo"
	"github.com/ironrail/ironrail/tool/recognise/internal/sonicshow"
	"github.com/ironrail/ironrail/tool/rvs"
)

// knownFormats returns the list of all formats: one line each, by package. A new one also
// has a sample NAME.* in testdata, on which the tests of this package try what
// every format must bear.
func knownFormats() []tool.Format {
	return slices.Concat(
		[]tool.Format{
			ibdev2netdev.Format, iblinkinfo.Format, ibnetdiscover.Format, ibqueryerrors.Format, ibswinfo.Format, lspci.Format,
			mlnxqos.Format, mlxconfig.Format, mlxlink.Format, perfquery.Format, rdmalink.Format, showgids.Format,
			imexctl.Format, lldpctl.Format, opensmlog.Format, saquery.Format, sminfo.Format, sonicshow.Format,
		},
		ibdiagnet.Formats,
		ethtool.Formats,
		ibstat.Formats,
		ibverbs.Formats,
		amdsmi.Formats,
		dmesg.Formats,
		rocmsmi.Formats,
		fabricmanager.Formats,
		nvidiasmi.Formats,
		[]tool.Format{nccllog.Format(), nccltests.NCCL(), nccltests.RCCL(), perftest.Format(), nvbandwidth.Format(), dcgmi.Format(), rocminfo.Format, rvs.Format()},
	)
}
