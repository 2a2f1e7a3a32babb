import { printLines } from '@custody/chains/terminal'
import { listen } from '../events/listen.ts'
import type { Run } from './typed.ts'

/** Runs until Ctrl-C, or until the reader of standard output has closed it. */
export const listenRun: Run = async ({ home, values }) => {
  const ending = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => ending.abort())
  process.stdout.on('error', () => ending.abort())
  return listen(home, values, printLines, ending.signal)
}
