import { existsSync, globSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { callPlatform } from '../../src/server/operator/connect.ts'
import type { ChaosRun } from './chaos-run.ts'

const LOOK_MS = 8000
const RECOVERY_MS = 60_000

/**
 * Returns the path of the library that changes the time of a process, or null if it is not
 * installed (Debian: faketime).
 */
export const fakeTime = (): string | null =>
  globSync('/usr/lib/*/faketime/libfaketimeMT.so.1').find((path) => existsSync(path)) ?? null

/**
 * Returns the environment variables with which the clock of the platform, but not of other
 * processes, follows a file.
 */
export function movedBy(library: string, file: string): Record<string, string> {
  writeFileSync(file, '+0\n')
  return {
    LD_PRELOAD: library,
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_NO_CACHE: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
  }
}

async function halt({ installation, payments }: ChaosRun, halted: boolean): Promise<void> {
  for (const network of new Set(payments.places.map((place) => place.network))) {
    await callPlatform(installation.home, 'devnet', { command: 'halt', network, halted })
  }
}

/**
 * Moves the platform's clock by hours while transfers are pending, and back: first forward, then
 * backward.
 */
export async function clockJumps(run: ChaosRun, file: string): Promise<string[]> {
  const { installation } = run
  const set = (offset: string) => {
    writeFileSync(file, `${offset}\n`)
    run.say(`the platform's clock is ${offset}`)
  }
  await run.begin()
  for (const offset of ['+6h', '-6h']) {
    // No block is produced during this time, so accepted transfers keep waiting, by the wrong
    // clock, for the next block.
    await halt(run, true)
    run.send(12)
    await run.answered()
    set(offset)
    await sleep(1000)
    const refused = await run.tried()
    run.expect(
      'a request whose time it does not believe is refused with 401',
      refused.status === 401,
      refused,
    )
    await sleep(LOOK_MS)
    run.expect('the platform runs', await installation.answers('/livez'), installation.lastLines())
    set('+0')
    await halt(run, false)
    await run.expectSoon(
      'with the right time again new transfers are taken',
      async () => (await run.tried()).status === 200,
      RECOVERY_MS,
      () => installation.readiness(),
    )
    await run.expectSoon(
      'and all that was accepted ends',
      async () => (await run.payments.pending()) === 0,
      RECOVERY_MS,
      () => run.payments.pending(),
    )
  }
  return run.end()
}
