import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect, type Socket } from 'node:net'
import type { Kind } from './installation.ts'
import type { ChaosRun } from './chaos-run.ts'

const STRANGERS = 200
const TRIES = 8

/** Sets the maximum number of file descriptors of a running process. */
function limit(pid: number, soft: number): boolean {
  return spawnSync('prlimit', ['--pid', String(pid), `--nofile=${soft}:`]).status === 0
}

const openOf = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length

/**
 * Lets processes open no more files: first the platform, while unknown clients connect to it, then
 * two signer nodes.
 */
export async function descriptorsGone(run: ChaosRun): Promise<string[]> {
  const { installation } = run
  await run.begin()
  const pidOf = (kind: Kind) => installation.pids(kind)[0] as number
  const platform = pidOf('platform')
  run.send(12)
  await run.answered()
  if (!limit(platform, openOf(platform))) throw new Error('prlimit cannot limit the platform')
  run.say(`the platform may open no more than its ${openOf(platform)} files`)
  const strangers: Socket[] = Array.from({ length: STRANGERS }, () =>
    connect(installation.port, '127.0.0.1').on('error', () => undefined),
  )
  installation.kill('signer 3')
  run.send(12)
  const seen = new Map<string, number>()
  for (let at = 0; at < TRIES; at++) {
    const { status, code } = await run.tried()
    seen.set(`${status} ${code}`, (seen.get(`${status} ${code}`) ?? 0) + 1)
    await sleep(1000)
  }
  run.say(
    `meanwhile requests were answered: ${[...seen].map(([answer, count]) => `${count} × ${answer}`).join(', ')}`,
  )
  run.expect(
    'each was done, refused with 503, or not answered at all',
    [...seen.keys()].every((answer) => /^(200|503|0) /.test(answer)),
    [...seen],
  )
  run.expect(
    'the platform is the same process',
    pidOf('platform') === platform,
    installation.lastLines(),
  )
  for (const socket of strangers) socket.destroy()
  limit(platform, 4096)
  await run.expectSoon(
    'with files again it is ready, and the node that had died meanwhile with it',
    async () =>
      (await installation.answers('/readyz?deep')) &&
      (await installation.readiness())?.checks['signer_3'] === 'ok',
    60_000,
    () => installation.readiness(),
  )
  await run.answered()

  const nodes = (['signer 1', 'signer 2'] as const).map(pidOf)
  for (const pid of nodes) limit(pid, openOf(pid))
  run.say('two signer nodes may open no further file')
  run.send(12)
  await run.answered()
  await sleep(8000)
  run.expect(
    'both are the same processes',
    (['signer 1', 'signer 2'] as const).map(pidOf).join() === nodes.join(),
  )
  for (const pid of nodes) limit(pid, 4096)
  await run.expectSoon(
    'all that was accepted ends',
    async () => (await run.payments.pending()) === 0,
    90_000,
    () => installation.readiness(),
  )
  return run.end()
}
