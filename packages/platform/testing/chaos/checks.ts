import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Devnet } from '../../../devnet/src/devnet.ts'
import { freePorts } from '../../../signer/testing/data-dirs.ts'
import type { Installation } from './installation.ts'
import type { Payments, PlannedPayment } from './payments.ts'

const ASKED_AT_ONCE = 8

async function atOnce<T>(list: readonly T[], work: (each: T) => Promise<void>): Promise<void> {
  const left = [...list]
  await Promise.all(
    Array.from({ length: ASKED_AT_ONCE }, async () => {
      for (let next = left.shift(); next !== undefined; next = left.shift()) await work(next)
    }),
  )
}

const named = ({ sequence, amount, place, wallets }: PlannedPayment) =>
  `${sequence} (${amount} ${place.asset} of ${wallets.subAccount})`

/**
 * Waits until no transfer is pending.
 * @throws Error if transfers are still pending after the time limit
 */
export async function atRest(payments: Payments, timeoutMs: number): Promise<void> {
  for (
    const deadline = Date.now() + timeoutMs;
    (await payments.pending()) !== 0;
    await sleep(500)
  ) {
    if (Date.now() > deadline)
      throw new Error(
        `${String(await payments.pending())} transfers have not ended ${timeoutMs / 1000} s after the storm`,
      )
  }
}

/**
 * Checks the API once all transfers have ended: repeated requests, final states, the list and the
 * audit.
 * @returns the problems
 */
async function askedAgain(installation: Installation, payments: Payments): Promise<string[]> {
  const problems: string[] = []
  await atOnce(payments.wanted, async (wanted) => {
    await payments.ask(wanted)
    if (wanted.refused !== null)
      return void problems.push(`${named(wanted)}: it was refused: ${wanted.refused}`)
    if (wanted.ids.size !== 1 || wanted.id === null)
      return void problems.push(
        `${named(wanted)}: the answers name ${[...wanted.ids].join(', ') || 'nothing'}`,
      )
    const end = await wanted.wallets.client.transaction(wanted.id)
    wanted.end = end
    if (end.status === 'pending')
      problems.push(`${named(wanted)}: it has not ended, and is ${end.sub_status}`)
  })
  for (const { client, subAccount } of payments.users) {
    const own = new Set(
      payments.wanted
        .filter(({ wallets }) => wallets.subAccount === subAccount)
        .map(({ id }) => id),
    )
    for await (const { id } of client.eachTransaction({ type: 'Withdraw', limit: 200 }))
      if (!own.delete(id))
        problems.push(`${subAccount}: there is a transfer ${id} that nobody asked for`)
    for (const id of own) problems.push(`${subAccount}: the list lacks ${id}`)
  }
  const audit = await installation.cli('audit', '--json')
  const { compared, dust } = parsed(audit.text)
  if (audit.status !== 0)
    problems.push(`the audit: exit ${String(audit.status)}: ${audit.text.slice(0, 2000)}`)
  else if (!(Number(compared) > 0))
    problems.push(`the audit compared nothing: ${audit.text.slice(0, 500)}`)
  else if (JSON.stringify(dust) !== '[]')
    problems.push(`the audit: dust that no stranger sent: ${JSON.stringify(dust)}`)
  return problems
}

function parsed(text: string): { compared?: number; dust?: unknown } {
  try {
    return JSON.parse(text) as { compared?: number; dust?: unknown }
  } catch {
    return {}
  }
}

/**
 * Compares the API with the blocks of the chains, which are read from the chains' journals while
 * nothing else runs: each confirmed transfer is in them once, with the hash that the API returns,
 * and each other transfer is not.
 */
async function onChains(
  installation: Installation,
  payments: Payments,
): Promise<{ problems: string[]; compared: number }> {
  const problems: string[] = []
  const paid = new Map<string, string[]>()
  const devnet = await Devnet.start(
    join(installation.home, 'devnet'),
    (await freePorts(1))[0] as number,
    { manual: true },
  )
  try {
    for (const network of new Set(payments.places.map((place) => place.network))) {
      const chain = devnet.chains.find(({ code }) => code === network)
      await chain?.start()
      const height = (await chain?.info())?.head?.height ?? -1
      for (let at = 0; at <= height; at++) {
        for (const { asset, address, amount, hash } of (await chain?.paymentsIn(at)) ?? []) {
          const key = `${asset} ${address.toLowerCase()} ${amount}`
          paid.set(key, [...(paid.get(key) ?? []), hash])
        }
      }
    }
  } finally {
    devnet.close()
  }
  let compared = 0
  for (const wanted of payments.wanted) {
    const { place, units, end } = wanted
    const hashes = paid.get(`${place.asset} ${place.to.toLowerCase()} ${units}`) ?? []
    if (hashes.length > 1)
      problems.push(`${named(wanted)}: it was paid ${hashes.length} times: ${hashes.join(', ')}`)
    if (end === null) continue
    if (hashes.length !== (end.status === 'confirmed' ? 1 : 0))
      problems.push(
        `${named(wanted)}: it is ${end.status} (${end.sub_status}), and the chain has it ${hashes.length} times`,
      )
    else if (end.status === 'confirmed' && end.hash !== hashes[0])
      problems.push(`${named(wanted)}: its hash is ${end.hash}; the chain has ${hashes[0]}`)
    else compared++
  }
  return { problems, compared }
}

/**
 * Repeats requests of ended transfers, stops the installation, and reads the chains.
 * @returns the problems, and the number of compared transfers
 */
export async function endWell(
  installation: Installation,
  payments: Payments,
): Promise<{ problems: string[]; compared: number }> {
  const problems = await askedAgain(installation, payments)
  const status = await installation.stop()
  if (status !== 0) problems.push(`SIGTERM: it ended with ${String(status)}`)
  const left = installation.left()
  if (left.length > 0) problems.push(`after its end there still run: ${left.join('; ')}`)
  problems.push(...installation.ended.map((why) => `the platform ended by itself: ${why}`))
  const chains = await onChains(installation, payments)
  problems.push(...chains.problems)
  if (chains.compared === 0) problems.push('nothing was compared')
  return { problems, compared: chains.compared }
}
