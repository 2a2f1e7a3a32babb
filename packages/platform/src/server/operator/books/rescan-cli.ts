import { printLines, printNotice } from '@custody/chains/terminal'
import { callPlatform } from '../connect.ts'
import { need, type Outcome, type Values } from '../cli/typed.ts'

const POLL_MS = 300
const LINE_MS = 5000

interface Progress {
  network: string
  from: number
  to: number
  heights: number
  deposits: number
  done: boolean
  running: boolean
  reason: string | null
}

const line = ({ network, from, to, heights, deposits, reason }: Progress): string =>
  `${network}: ${heights} of ${to - from + 1} heights read, ${deposits} deposits found${reason === null ? '' : `; waiting: ${reason}`}`

/**
 * Runs `custody rescan`: starts a rescan in the platform, prints its progress, and ends with it.
 */
export async function rescan(home: string, network: string, values: Values): Promise<Outcome> {
  const ask = async (command: string) =>
    (await callPlatform(home, command, { network })) as unknown as Progress
  if (values['stop'] === true) {
    const stopped = await ask('rescan stop')
    return { result: { ...stopped }, text: `${line(stopped)}; the rescan was stopped` }
  }
  await callPlatform(home, 'rescan start', {
    network,
    from: need(values, 'from'),
    to: values['to'],
  })
  // With --json or --field, standard output may only contain one JSON object or one field, so
  // progress is printed to standard error.
  const print = values['json'] === true || values['field'] !== undefined ? printNotice : printLines
  for (let printed = '', at = -Infinity; ;) {
    const progress = await ask('rescan progress')
    const text = line(progress)
    const ended = progress.done || !progress.running
    if (text !== printed && (ended || performance.now() - at >= LINE_MS)) {
      print(text)
      printed = text
      at = performance.now()
    }
    if (ended) {
      const again = `run the command again to continue at ${progress.from + progress.heights}`
      return {
        result: { ...progress },
        exitCode: progress.done ? 0 : 1,
        text: progress.done
          ? `heights ${progress.from} to ${progress.to} of ${network} were read again`
          : `the rescan was stopped; ${again}`,
      }
    }
    await new Promise((resolve) => {
      setTimeout(resolve, POLL_MS)
    })
  }
}
