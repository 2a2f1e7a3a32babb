import { autoForwardingLoop } from '../auto-forwarding/loop.ts'
import type { HeldNetworks } from '../deposits/hold-networks.ts'
import { scanLoop } from '../deposits/scanner.ts'
import { requeueSweepsLoop } from '../deposits/sweeps.ts'
import type { Loop } from '../engine/loop.ts'
import { transactionLoop } from '../engine/run.ts'
import type { Services } from '../engine/services.ts'
import { exchangeTransferLoop } from '../exchange-transfers/loop.ts'
import { reconcileLoop } from '../exchanges/reconcile.ts'
import { fillTanksLoop } from '../gas-tanks/ensure-tank.ts'
import { watchTanksLoop } from '../gas-tanks/watch-tanks.ts'
import { invoiceLoop } from '../invoices/loop.ts'
import { awaitedNetworksShared, mempoolLoop } from '../invoices/mempool.ts'
import { turnOfDayLoop } from '../prepaid-fee/turn-of-day.ts'
import { watchReleasableLoop } from '../staking/watch-releasable.ts'
import { orderLoop } from '../trading/loop.ts'
import { deliverLoop } from '../webhooks/deliver.ts'
import { clockLoop } from './clock.ts'
import { isScanner, isWorker } from './role-duties.ts'
import { foldLoop, housekeepingLoop } from './housekeeping.ts'

/**
 * Returns the background loops of a process, depending on its role. Several workers share due work
 * with leases and row locks; with several scanners, one follows each network (`held`).
 */
export function loopsOf(services: Services, held: HeldNetworks): Loop[] {
  const { role } = services.settings
  return [
    ...(isWorker(role) || isScanner(role) ? [clockLoop(services)] : []),
    ...(isWorker(role) ? workLoops(services) : []),
    ...(isScanner(role) ? scanLoops(services, held) : []),
  ]
}

function workLoops(services: Services): Loop[] {
  return [
    transactionLoop(services),
    ...(services.devnet ? [fillTanksLoop(services)] : []),
    watchTanksLoop(services),
    turnOfDayLoop(services),
    watchReleasableLoop(services),
    housekeepingLoop(services),
    foldLoop(services),
    autoForwardingLoop(services),
    invoiceLoop(services),
    orderLoop(services),
    exchangeTransferLoop(services),
    reconcileLoop(services),
    requeueSweepsLoop(services),
    deliverLoop(services),
  ]
}

function scanLoops(services: Services, held: HeldNetworks): Loop[] {
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
      chain.mempool ? [mempoolLoop(services, chain, chain.mempool, awaitedHere)] : [],
    ),
  ]
}
