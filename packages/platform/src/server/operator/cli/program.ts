import {
  commandName,
  errorText,
  jsonText,
  manyLines,
  printJson,
  printLines,
  printNotice,
} from '@custody/chains/terminal'
import { Command, CommanderError, Option } from 'commander'
import packageFile from '../../../../package.json' with { type: 'json' }
import { OperatorError } from '../command.ts'
import { findField } from '../field.ts'
import { argumentsOf, wordsOf, type Definition } from './definition.ts'
import { bundleOf, programFor, PROGRAMS, runProgram } from './programs.ts'
import type { Outcome, Values } from './typed.ts'

const GROUPS: Record<string, string> = {
  'api-user': 'Manage the API users (callers of the API).',
  'prepaid-fee': 'Manage the prepaid fee accounts.',
  'gas-tank': 'Manage the gas tanks.',
  devnet: 'Control the local chains.',
  'devnet venue': 'Control the local exchanges.',
  aml: 'Manage the screening of addresses.',
  sweep: 'Manage the sweeps of deposit addresses.',
  console: 'Manage the users of the control panel.',
  'audit-log': 'Export and verify the audit log of the control panel.',
  wallet: 'Manage the wallets.',
  reserves: 'Publish and print proofs of reserves.',
  suspense: 'Manage deposits that belong to no wallet.',
  policy: 'Manage the policies of workspaces.',
  approver: 'Serve a local page on which a person approves transfers with a passkey.',
  signer: 'Manage the signer nodes.',
  'signer policy': 'Manage the policy at one signer node.',
  'secrets-key': 'Manage the key that encrypts the secrets in the database.',
}

/** Returns one line of help for a command and its required arguments. */
export function lineOf(definition: Definition): string {
  const needed = Object.keys(definition.options ?? {})
    .filter((name) => name.startsWith('!'))
    .map((name) => `--${name.slice(1)}`)
  const more = needed.length < Object.keys(definition.options ?? {}).length ? ['[options]'] : []
  return [definition.usage, ...needed, ...more].join(' ')
}

const command = commandName()

const listed = (lines: readonly { line: string; summary: string }[]): string =>
  lines.map(({ line, summary }) => `  ${line}\n      ${summary}`).join('\n')

function allOf(commands: readonly Definition[]): string {
  const bundle = bundleOf()
  const programs = PROGRAMS.filter(({ hosts }) => bundle === null || hosts.includes(bundle))
  return `Usage: ${command} COMMAND [options]

Commands:
${listed(commands.map((definition) => ({ line: lineOf(definition), summary: definition.summary })))}

Long-running and set-up programs:
${listed(programs.map(({ usage, summary }) => ({ line: usage, summary })))}

Run "${command} COMMAND --help" for the arguments and options of a command, and "${command} --version" for the version.
${
  bundle === 'signer'
    ? 'The platform bundle contains the commands of the platform.'
    : 'CUSTODY_HOME is the home folder of the platform (default: ./.custody).'
}
`
}

/**
 * Converts an option to commander's form. Several values of an option that ends with `…` are joined
 * by line feeds.
 */
function optionOf(name: string, text: string): Option {
  const [flag = '', value] = name.replace('!', '').split(' ')
  const option = new Option(
    value === undefined ? `--${flag}` : `--${flag} <${value}>`,
    name.startsWith('!') ? `${text} (required)` : text,
  )
  const join = (more: string, before: string | undefined) =>
    before === undefined ? more : `${before}\n${more}`
  if (value?.endsWith('…')) option.argParser(join)
  return option
}

/**
 * Returns the option values by the options' own names, which commander converts to camelCase. For
 * `--no-…` commander returns the negated value, which is true if the option is absent.
 */
function valuesOf(command: Command): Values {
  const input = command.opts<Record<string, string | boolean | undefined>>()
  return Object.fromEntries(
    command.options.map((option) => {
      const value = input[option.attributeName()]
      return [(option.long ?? '').slice(2), option.negate ? value === false : value]
    }),
  )
}

/**
 * Prints the exact value if the output is read by a script; on a terminal, without control
 * characters.
 */
function printField(value: string): void {
  process.stdout.write(`${process.stdout.isTTY ? manyLines(value) : value}\n`)
}

async function run(definition: Definition, home: string, parsed: Command): Promise<void> {
  const values = valuesOf(parsed)
  for (const name of Object.keys(definition.options ?? {})) {
    const option = name.slice(1).split(' ')[0] as string
    if (name.startsWith('!') && (values[option] === undefined || values[option] === '')) {
      throw new OperatorError(`--${option} is required`, `Usage: ${command} ${lineOf(definition)}`)
    }
  }
  const start = await definition.run()
  print(await start({ home, words: parsed.args, values }), values)
}

/**
 * Prints the outcome of a command.
 * @throws OperatorError if `--field` names a field that the result does not have; the error
 *   contains the result, because the command may have changed something
 */
function print({ result, text, exitCode = 0, notices = [] }: Outcome, values: Values): void {
  if (notices.length > 0) printNotice(notices)
  const path = values['field']
  const lines = text ?? jsonText(result, 2).split('\n')
  if (typeof path === 'string' && exitCode === 0) {
    const field = findField(result, path)
    if (!field.isFound) throw new OperatorError(`--field: ${field.reason}`, ...[lines].flat())
    printField(field.text)
  } else if (values['json']) printJson(result)
  else printLines(lines)
  process.exitCode = exitCode
}

function quiet(command: Command): Command {
  return command
    .exitOverride()
    .configureOutput({
      outputError: () => undefined,
      writeErr: () => undefined,
    })
    .helpCommand(false)
    .showSuggestionAfterError(true)
    .helpOption('-h, --help', 'Print the help of this command.')
}

/** Creates the operator's command from its definitions. */
function programOf(commands: readonly Definition[], home: string): Command {
  const version = `custody ${packageFile.version}`
  const program = quiet(new Command(command))
    .usage('COMMAND [options]')
    .version(version, '-V, --version', 'Print the version.')
  const groups = new Map<string, Command>()
  for (const definition of commands) {
    const words = wordsOf(definition)
    let parent = program
    for (const [at, word] of words.slice(0, -1).entries()) {
      const path = words.slice(0, at + 1).join(' ')
      const group = groups.get(path) ?? quiet(parent.command(word).description(GROUPS[path] ?? ''))
      groups.set(path, group)
      parent = group
    }
    const own = quiet(parent.command(words.at(-1) ?? '').description(definition.summary))
    for (const argument of argumentsOf(definition))
      own.argument(argument, definition.args?.[argument.slice(1, -1)] ?? '')
    for (const [name, text] of Object.entries(definition.options ?? {}))
      own.addOption(optionOf(name, text))
    own
      .option('--json', 'output as one JSON object in the last line')
      .option(
        '--field <NAME>',
        'field of the result to print alone, such as data.0.id; exit 1 if the result has no such field',
      )
    own.action(() => run(definition, home, own))
  }
  // The formatter is set last, because the other commands would inherit it. The help of the program
  // is the list of all commands.
  return program.configureHelp({ formatHelp: () => allOf(commands) })
}

/**
 * Runs the operator's command with these words. Sets the exit code, and prints an error as one
 * sentence to standard error.
 * @param commands commands of this installation
 * @param refuse throws if the words name a command of another host
 */
export async function main(
  words: readonly string[],
  home: string,
  commands: readonly Definition[],
  refuse: (words: readonly string[]) => void = () => undefined,
): Promise<void> {
  try {
    const separate = programFor(words)
    if (separate) return await runProgram(separate, words)
    refuse(words)
    const program = programOf(commands, home)
    if (words.length === 0) program.outputHelp()
    else
      await program.parseAsync(words[0] === 'help' ? [...words.slice(1), '--help'] : words, {
        from: 'user',
      })
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return
    process.exitCode = 1
    process.stderr.write(`custody: ${manyLines(sentenceOf(error, words, commands))}\n`)
  }
}

/** Converts commander's errors into this command's messages. */
function sentenceOf(
  error: unknown,
  words: readonly string[],
  commands: readonly Definition[],
): string {
  if (!(error instanceof CommanderError)) return errorText(error)
  const isBelow = (path: string) =>
    commands.some((definition) => wordsOf(definition).slice(0, -1).join(' ') === path)
  // The longest group that the words name: `devnet venue` before `devnet`.
  const path = words.slice(0, words.length > 1 && isBelow(words.slice(0, 2).join(' ')) ? 2 : 1)
  const group = commands.filter((definition) =>
    path.every((word, at) => wordsOf(definition)[at] === word),
  )
  const lines = group.map((each) => `  ${lineOf(each)}`).join('\n')
  // The words name only a group of commands.
  if (error.code === 'commander.help')
    return `${path.join(' ')} requires one of these commands:\n${lines}`
  const existing = group.find((each) => wordsOf(each).every((word, at) => word === words[at]))
  const hint = existing
    ? `Usage: ${command} ${lineOf(existing)}`
    : lines || `run "${command} --help" for a list of all commands`
  return `${error.message.replace(/^error: /, '')}\n${hint}`
}
