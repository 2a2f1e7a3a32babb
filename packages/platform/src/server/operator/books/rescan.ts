import type { Network, Registry } from '@custody/chains'
import { reasonOf } from '@custody/chains/reason'
import {
  readRescan,
  RescanTaken,
  runRescan,
  stopRescan,
  takeRescan,
} from '../../../custody/deposits/rescan.ts'
import type { Environment } from '../../../core/environment.ts'
import type { Database } from '../../../core/database/pool.ts'
import type { Networks } from '../../../core/engine/networks.ts'
import type { Logger } from 'pino'
import type { Notifier } from '../../../core/ledger/notifier.ts'
import type { Invoices } from '../../../core/engine/interfaces/listeners.ts'
import type { Prices } from '../../../custody/prices/prices.ts'
import { OperatorError, type Command } from '../command.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  log: Logger
  work: Notifier
  invoices: Invoices
  prices: Prices
}

const HEIGHT = /^\d{1,15}$/

function networkOf(services: Pick<Services, 'registry' | 'networks'>, typed: unknown): Network {
  const code = String(typed ?? '')
  const network = services.registry.network(code)
  if (!network) {
    const codes = services.registry.networks.map((each) => each.code).join(', ')
    throw new OperatorError(
      `NETWORK: ${JSON.stringify(code)} is not a network; use one of ${codes}`,
    )
  }
  if (!services.networks.has(code))
    throw new OperatorError(
      `NETWORK: no endpoint is configured for ${code}; add networks.${code}.url to custody.config.json`,
    )
  return network
}

function heightOf(typed: unknown, option: string): number {
  const text = String(typed)
  if (!HEIGHT.test(text))
    throw new OperatorError(
      `--${option}: ${JSON.stringify(text)} is not a height: an integer of at most 15 digits`,
    )
  return Number(text)
}

/**
 * Starts a rescan of a network's heights, or continues the rescan of the same heights; only one
 * rescan can run for each network.
 */
export const startRescan: Command<Services> = async (services, input) => {
  const network = networkOf(services, input['network'])
  const from = heightOf(input['from'], 'from')
  const typed =
    input['to'] === undefined || input['to'] === null ? null : heightOf(input['to'], 'to')
  const { code } = network
  const scan = await services.database.one<{ height: string }>(
    'select height::text from network_scans where network = $1 and height is not null',
    [code],
  )
  if (!scan)
    throw new OperatorError(`NETWORK: ${code} is not scanned: this platform has no address on it`)
  const head = Number(scan.height)
  if (from > head)
    throw new OperatorError(
      `--from: ${from} is beyond ${head}, the last height of ${code} that the scan has read`,
    )
  if (typed !== null && typed > head) {
    throw new OperatorError(
      `--to: ${typed} is beyond ${head}, the last height of ${code} that the scan has read`,
    )
  }
  const existing = await readRescan(services, code)
  // Without --to, an interrupted rescan from the same height continues to its original end.
  const isSame =
    existing !== null &&
    existing.from === from &&
    existing.next <= existing.to &&
    (typed === null || typed === existing.to)
  const to = isSame ? existing.to : (typed ?? head)
  if (from > to) throw new OperatorError(`--from: ${from} is above --to, which is ${to}`)
  if (existing?.isRunning) {
    if (isSame) return { network: code, from, to, started: false }
    throw new OperatorError(
      `the rescan of ${code} from ${existing.from} to ${existing.to} is in progress, at ${existing.next}: wait until it ends, or stop it with "npx custody rescan ${code} --stop"`,
    )
  }
  const token = await takeRescan(services, code, from, to)
  if (token === null)
    throw new OperatorError(
      `another process has started a rescan of ${code}: run the command again to follow it`,
    )
  void runRescan(services, services.networks.get(code), token)
    .then(
      () => stopRescan(services, code, token, null),
      async (error: unknown) => {
        if (error instanceof RescanTaken) return
        services.log.warn(
          { network: code, err: reasonOf(error) },
          'a rescan failed before it was complete',
        )
        await stopRescan(services, code, token, reasonOf(error))
      },
    )
    .catch((error: unknown) =>
      services.log.warn(
        { network: code, err: reasonOf(error) },
        'the end of a rescan could not be stored in the database',
      ),
    )
  return { network: code, from, to, started: true }
}

/** Returns the progress of a network's last rescan. */
export const rescanProgress: Command<Pick<Services, 'database' | 'registry' | 'networks'>> = async (
  services,
  input,
) => {
  const { code } = networkOf(services, input['network'])
  const rescan = await readRescan(services, code)
  if (!rescan) throw new OperatorError(`${code} was never rescanned`)
  const { from, to, next, found: match, error, isRunning } = rescan
  return {
    network: code,
    from,
    to,
    heights: next - from,
    deposits: match,
    done: next > to,
    running: isRunning,
    reason: error,
  }
}

/** Stops a running rescan; the deposits that it found remain. */
export const endRescan: Command<Pick<Services, 'database' | 'registry' | 'networks'>> = async (
  services,
  input,
) => {
  const { code } = networkOf(services, input['network'])
  await stopRescan(services, code, null, null)
  return rescanProgress(services, input)
}
