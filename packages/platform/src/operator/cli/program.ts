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
import packageFile from '../../../package.json' with { type: 'json' }
import { OperatorError } from '../command.ts'
import { findField } from '../field.ts'
import { argumentsOf, wordsOf, type Definition } from './definition.ts'
import { bundleOf, programFor, PROGRAMS, runProgram } from './programs.ts'
import type { Outcome, Values } from './typed.ts'

const GROUPS: Record<string, string> = {
  'api-user': 'callers of the API',
  'prepaid-fee': 'prepaid fee accounts',
  'gas-tank': 'gas tanks',
  devnet: 'the local chains',
  'devnet venue': 'the local exchanges',
  aml: 'screening',
  sweep: 'sweeps of deposit addresses',
  console: 'who uses the control panel',
  'audit-log': 'what was done in the control panel',
  wallet: 'wallets',
  reserves: 'proof of reserves',
  suspense: 'deposits that belong to no wallet',
  signer: 'signer nodes',
  'secrets-key': 'the key under which secrets of others are sealed',
}

/** One line for a command and what it needs. */
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

Programs of a host:
${listed(programs.map(({ usage, summary }) => ({ line: usage, summary })))}

${command} COMMAND --help tells of one command, ${command} --version tells the version.
${
  bundle === 'signer'
    ? 'The commands of the platform are in the platform bundle.'
    : 'The platform is found through CUSTODY_HOME (default ./.custody).'
}
`
}

/**
 * Option as commander takes it. The values of one that ends with `…` and is given several times are
 * joined by line feeds.
 */
function optionOf(name: string, text: string): Option {
  const [flag = '', value] = name.replace('!', '').split(' ')
  const option = new Option(
    value === undefined ? `--${flag}` : `--${flag} <${value}>`,
    name.startsWith('!') ? `${text} (needed)` : text,
  )
  const join = (more: string, before: string | undefined) =>
    before === undefined ? more : `${before}\n${more}`
  if (value?.endsWith('…')) option.argParser(join)
  return option
}

/**
 * What the library calls camelCase, by the option's own name; of `--no-…` it tells the opposite,
 * and true where it is absent.
 */
function valuesOf(command: Command): Values {
  const given = command.opts<Record<string, string | boolean | undefined>>()
  return Object.fromEntries(
    command.options.map((option) => {
      const value = given[option.attributeName()]
      return [(option.long ?? '').slice(2), option.negate ? value === false : value]
    }),
  )
}

/** Exact for a script; at a terminal without control characters. */
function printField(value: string): void {
  process.stdout.write(`${process.stdout.isTTY ? manyLines(value) : value}\n`)
}

async function run(definition: Definition, home: string, parsed: Command): Promise<void> {
  const values = valuesOf(parsed)
  for (const name of Object.keys(definition.options ?? {})) {
    const option = name.slice(1).split(' ')[0] as string
    if (name.startsWith('!') && (values[option] === undefined || values[option] === '')) {
      throw new OperatorError(`--${option} is needed`, `Usage: ${command} ${lineOf(definition)}`)
    }
  }
  const start = await definition.run()
  print(await start({ home, words: parsed.args, values }), values)
}

/**
 * @throws OperatorError where `--field` names what the answer does not have; with the answer,
 *   which may be of a write
 */
function print({ result, text, exitCode = 0, notices = [] }: Outcome, values: Values): void {
  if (notices.length > 0) printNotice(notices)
  const path = values['field']
  const lines = text ?? jsonText(result, 2).split('\n')
  if (typeof path === 'string' && exitCode === 0) {
    const field = findField(result, path)
    if (!field.found) throw new OperatorError(`--field: ${field.reason}`, ...[lines].flat())
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
    .helpOption('-h, --help', 'tells of this command')
}

/** The operator's command, made of its definitions. */
function programOf(commands: readonly Definition[], home: string): Command {
  const version = `custody ${packageFile.version}`
  const program = quiet(new Command(command))
    .usage('COMMAND [options]')
    .version(version, '-V, --version')
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
    const usage = [words.at(-1) ?? '', ...argumentsOf(definition)].join(' ')
    const own = quiet(parent.command(usage).description(definition.summary))
    for (const [name, text] of Object.entries(definition.options ?? {}))
      own.addOption(optionOf(name, text))
    own
      .option('--json', 'prints one JSON object as the last line')
      .option(
        '--field <NAME>',
        'prints one field of the answer, such as data.0.id, alone; exit 1 if the answer has no such field',
      )
    own.action(() => run(definition, home, own))
  }
  // After the others, which would inherit it: its help is our own list.
  return program.configureHelp({ formatHelp: () => allOf(commands) })
}

/**
 * The operator's command on these words. Sets the exit code; what went wrong is one sentence on
 * standard error.
 * @param commands of this installation
 * @param refuse throws where the words name a command of another host
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

/** The library's errors in the words of this command. */
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
  // A group by its name alone.
  if (error.code === 'commander.help')
    return `${path.join(' ')} needs one of its commands:\n${lines}`
  const known = group.find((each) => wordsOf(each).every((word, at) => word === words[at]))
  const hint = known
    ? `Usage: ${command} ${lineOf(known)}`
    : lines || `${command} --help lists all commands`
  return `${error.message.replace(/^error: /, '')}\n${hint}`
}
