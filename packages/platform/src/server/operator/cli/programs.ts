import { printLines } from '@custody/chains/terminal'
import { fileURLToPath } from 'node:url'
import { OperatorError } from '../command.ts'
import { wordsOf } from './definition.ts'

/**
 * Kind of host: of the platform, or of a signer node. A bundle is for one of them; a checkout is
 * for both.
 */
export type Host = 'platform' | 'signer'

/** A command that is a separate program. It parses its own arguments and runs in this process. */
export interface Program {
  usage: string
  summary: string
  hosts: readonly Host[]
  /** Options of the program, for the check of the documentation. */
  options: readonly string[]
  /** Module of the program below `packages`, by kind of host. */
  modules: Partial<Record<Host, string>>
  /** Arguments that are appended to the entered ones. */
  more?: readonly string[]
}

const SETUP_OPTIONS = [
  'as',
  'mode',
  'node',
  'home',
  'host',
  'port',
  'ports',
  'listen',
  'out',
  'peers',
  'platform',
  'recovery',
  'kek',
  'check',
  'repair-clock',
  'restore',
  'recovery-secret-file',
  'print',
]

export const PROGRAMS: readonly Program[] = [
  {
    usage: 'start',
    hosts: ['platform'],
    options: [],
    modules: { platform: 'platform/src/main.ts' },
    summary:
      'Run the platform until SIGTERM. Its settings are environment variables; CUSTODY_ROLE is the role of the process (docs/settings.md).',
  },
  {
    usage: 'signer start',
    hosts: ['signer'],
    options: ['home'],
    modules: { signer: 'signer/src/main.ts' },
    more: ['--keep'],
    summary: 'Run the signer node whose home folder is --home until SIGTERM.',
  },
  {
    usage: 'setup',
    hosts: ['platform', 'signer'],
    options: SETUP_OPTIONS,
    modules: { platform: 'signer/src/setup-platform.ts', signer: 'signer/src/setup.ts' },
    summary:
      'Set up a signer node, a recovery key or the platform’s identity, check a set-up, or restore the home of a signer node.',
  },
  {
    usage: 'tls',
    hosts: ['platform', 'signer'],
    options: ['home', 'days'],
    modules: { platform: 'signer/src/tls.ts', signer: 'signer/src/tls.ts' },
    summary: 'Print the expiry date of a TLS certificate (status), or renew it (renew).',
  },
  {
    usage: 'kek',
    hosts: ['signer'],
    options: ['home', 'kek'],
    modules: { signer: 'signer/src/kek.ts' },
    summary:
      'Print (status), test (check), create (keygen) or replace (rotate) the key that wraps the keys of a signer node’s home.',
  },
  {
    usage: 'recover',
    hosts: ['signer'],
    options: [
      'home',
      'backup',
      'recovery-secret',
      'print',
      'listen',
      'peer',
      'workspace',
      'network',
      'to',
      'tag',
      'max-fee',
      'endpoint',
      'out',
      'in',
      'from-height',
      'gap',
      'sub-accounts',
      'partner',
      'wait',
    ],
    modules: { signer: 'signer/src/recover.ts' },
    summary:
      'Move funds without the platform, from backups of two signer nodes (docs/production/recovery-without-the-platform.md).',
  },
]

const NAMES: Record<Host, string> = {
  platform: 'a platform host (platform bundle)',
  signer: 'the host of a signer node (signer bundle)',
}

/**
 * Returns the kind of host that this bundle is for, or null for a checkout. The bundle's launcher
 * sets it.
 */
export function bundleOf(env: NodeJS.ProcessEnv = process.env): Host | null {
  const kind = env['CUSTODY_BUNDLE']
  return kind === 'platform' || kind === 'signer' ? kind : null
}

/** Returns the error for a command that is not in this bundle. */
export const elsewhere = (command: string, host: Host): OperatorError =>
  new OperatorError(
    `${command} is not in this bundle: run it on ${NAMES[host]}. custody --help lists the commands of this host`,
  )

/** Returns the program that these words name. */
export const programFor = (words: readonly string[]): Program | undefined =>
  PROGRAMS.find((program) => wordsOf(program).every((word, at) => words[at] === word))

/**
 * Runs a program with the words after its name, in this process. The program handles signals and
 * sets the exit code.
 * @throws OperatorError if this bundle does not contain it
 */
export async function runProgram(program: Program, words: readonly string[]): Promise<void> {
  const bundle = bundleOf()
  const name = wordsOf(program)
  if (bundle !== null && !program.hosts.includes(bundle))
    throw elsewhere(name.join(' '), program.hosts[0] as Host)
  const args = words.slice(name.length)
  if (program.options.length === 0 && args.length > 0) {
    if (args.every((arg) => arg === '--help' || arg === '-h'))
      return printLines([`Usage: custody ${program.usage}`, program.summary])
    throw new OperatorError(
      `${program.usage} takes no arguments: its settings are environment variables (docs/settings.md)`,
    )
  }
  // A checkout contains every module of each program.
  const module =
    bundle === null ? (program.modules.signer ?? program.modules.platform) : program.modules[bundle]
  const url = new URL(`../../../../../${module as string}`, import.meta.url)
  process.argv.splice(1, Infinity, fileURLToPath(url), ...args, ...(program.more ?? []))
  const loaded = (await import(url.href)) as { start?: () => Promise<void> }
  await loaded.start?.()
}
