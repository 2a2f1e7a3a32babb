import { traitsOf } from '@custody/chains'
import { judgeRulesLoop } from '../../custody/auto-forwarding/judge-rules.ts'
import { autoForwardingLoop } from '../../custody/auto-forwarding/loop.ts'
import type { HeldNetworks } from '../../custody/deposits/hold-networks.ts'
import { hasBalances, watchLoop } from '../../custody/contract-payments/watch.ts'
import { compareLoop } from '../../custody/deposits/compare-blocks.ts'
import { scanLoop } from '../../custody/deposits/scanner.ts'
import { requeueSweepsLoop } from '../../custody/deposits/sweeps.ts'
import type { Chain } from '../../core/engine/chain.ts'
import type { Loop } from '../../core/engine/loops/loop.ts'
import { headLoop } from '../../core/engine/endpoints/head-loop.ts'
import { transactionLoop } from '../../core/engine/run.ts'
import type { Application } from './application.ts'
import { exchangeTransferLoop } from '../../commerce/exchange-transfers/loop.ts'
import { reconcileLoop } from '../../commerce/exchanges/reconcile.ts'
import { fillTanksLoop } from '../../custody/gas-tanks/ensure-tank.ts'
import { watchTanksLoop } from '../../custody/gas-tanks/watch-tanks.ts'
import { invoiceLoop } from '../../commerce/invoices/loop.ts'
import { awaitedAddresses } from '../../commerce/invoices/awaited-addresses.ts'
import { awaitedNetworksShared, mempoolLoop } from '../../commerce/invoices/mempool.ts'
import { policyChangesLoop } from '../../custody/policies/changes/loop.ts'
import { policyStopsLoop } from '../../custody/policies/emergency/stops.ts'
import { turnOfDayLoop } from '../../custody/prepaid-fee/turn-of-day.ts'
import { watchReleasableLoop } from '../../custody/staking/watch-releasable.ts'
import { orderLoop } from '../../commerce/trading/loop.ts'
import { deliverLoop } from '../../events/webhooks/deliver.ts'
import { clockLoop } from './clock.ts'
import { isScanner, isWorker } from './health/role-duties.ts'
import { announceAddressesLoop } from '../../custody/wallets/announce-addresses.ts'
import { auditLoop } from '../audit/loop.ts'
import { foldLoop, housekeepingLoop } from './housekeeping.ts'

const MINUTES_A_DAY = 1440

/**
 * Returns the background loops of a process, depending on its role. Several workers share due work
 * with leases and row locks; with several scanners, one follows each network (`held`).
 */
export function loopsOf(services: Application, held: HeldNetworks): Loop[] {
  const { role } = services.settings
  return [
    ...(isWorker(role) || isScanner(role) ? [clockLoop(services)] : []),
    ...(isWorker(role) ? workLoops(services) : []),
    ...(isScanner(role) ? scanLoops(services, held) : []),
  ]
}

function workLoops(services: Application): Loop[] {
  return [
    transactionLoop(services),
    ...(services.devnet ? [fillTanksLoop(services)] : []),
    watchTanksLoop(services),
    turnOfDayLoop(services),
    watchReleasableLoop(services),
    policyChangesLoop(services),
    policyStopsLoop(services),
    housekeepingLoop(services),
    ...(services.settings.auditEveryMs > 0 ? [auditLoop(services)] : []),
    foldLoop(services),
    autoForwardingLoop(services),
    judgeRulesLoop(services),
    announceAddressesLoop(services),
    invoiceLoop(services),
    orderLoop(services),
    exchangeTransferLoop(services),
    reconcileLoop(services),
    requeueSweepsLoop(services),
    deliverLoop(services),
  ]
}

function scanLoops(services: Application, held: HeldNetworks): Loop[] {
  const awaited = awaitedNetworksShared(services)
  const chains = services.networks.all()
  const pooled = chains.filter(({ mempool }) => mempool).map(({ network }) => network.code)
  // If this process follows no network with a mempool, the database is not queried.
  const awaitedHere = async () =>
    new Set(
      pooled.some((network) => held.holds(network))
        ? [...(await awaited())].filter((network) => held.holds(network))
        : [],
    )
  return [
    held.loop(),
    ...chains.map((chain) => scanLoop(services, chain, held.followed)),
    ...chains.flatMap((chain) =>
      chain.network.stale_after_s === undefined
        ? []
        : [headLoop(chain, () => held.holds(chain.network.code))],
    ),
    ...chains.flatMap(({ network, agreement }) =>
      agreement
        ? [compareLoop(services, { network, agreement }, () => held.holds(network.code))]
        : [],
    ),
    ...chains.flatMap((chain) => watchLoopOf(services, chain, held)),
    ...chains.flatMap((chain) =>
      chain.mempool ? [mempoolLoop(services, chain, chain.mempool, awaitedHere)] : [],
    ),
  ]
}

/**
 * Returns the loop that finds what contracts paid on a network whose blocks do not list it. It uses at
 * most a tenth of an endpoint's quota.
 */
function watchLoopOf(services: Application, chain: Chain, held: HeldNetworks): Loop[] {
  const { network, balanceRequests: most = 0 } = chain
  if (!hasBalances(chain) || most === 0 || traitsOf(network).contractPayments === 'listed')
    return []
  const perDay = chain.pace?.perDay ?? null
  const calls =
    perDay === null ? most : Math.min(most, Math.max(1, Math.floor(perDay / MINUTES_A_DAY / 10)))
  return [
    watchLoop(services, chain, {
      calls,
      awaited: (code, limit) => awaitedAddresses(services, code, limit),
      follows: () => held.holds(network.code),
    }),
  ]
}
