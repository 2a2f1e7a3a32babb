import { ChainError, readMode, type NetworkMode } from '@custody/chains/basics'
import { printJson, printLines, printNotice } from '@custody/chains/terminal'
import { resolve } from 'node:path'
import { check } from './check.ts'
import { SetupError, writeJson } from './files.ts'
import { setupPlatform, type SetupResult } from './platform.ts'

/**
 * Reads the mode.
 * @throws SetupError
 */
export function modeOf(typed: string): NetworkMode {
  try {
    return readMode(typed)
  } catch (error) {
    throw error instanceof ChainError ? new SetupError(`--mode: ${error.message}`) : error
  }
}

/**
 * Writes a public configuration to the requested file, or prints it. The lines are printed to
 * standard error, because the public configuration on standard output may be piped.
 */
export function print({ half: made, lines }: SetupResult, out: string | undefined): void {
  if (made && out !== undefined) writeJson(resolve(out), made)
  else if (made) printJson(made)
  printNotice(lines)
}

export async function checkHome(home: string): Promise<void> {
  const { lines, ok } = await check(home)
  printLines(lines)
  process.exitCode = ok ? 0 : 1
}

export async function runPlatformSetup({
  home,
  mode,
  peers,
  out,
}: {
  home: string
  mode: NetworkMode
  peers: string | undefined
  out: string | undefined
}): Promise<void> {
  const files = peers === undefined ? {} : { peers: peers.split(',').map((file) => resolve(file)) }
  print(await setupPlatform({ home, mode, ...files }), out)
}
