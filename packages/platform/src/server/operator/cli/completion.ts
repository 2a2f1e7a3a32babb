import { OperatorError } from '../command.ts'
import { argumentsOf, wordsOf, type Definition } from './definition.ts'
import type { Run } from './typed.ts'

/** Completion of an option's value: file names, or nothing. */
type Value = 'file' | 'text'
interface OptionOf {
  flag: string
  value: Value | null
  text: string
}
/** A position in the command line after some words: `gas-tank`, or `gas-tank drain`. */
interface CursorPosition {
  path: string
  words: { word: string; text: string }[]
  options: OptionOf[]
  choices: readonly string[]
  files: boolean
}

const FILES = /^(?:F|FILE|DIR|HOME)$/
const EVERY: readonly OptionOf[] = [
  { flag: '--json', value: null, text: 'output as one JSON object in the last line' },
  { flag: '--field', value: 'text', text: 'field of the result to print alone' },
  { flag: '--help', value: null, text: 'Print the help of this command.' },
]

function optionsOf({ options = {} }: Definition): OptionOf[] {
  return Object.entries(options).map(([name, text]) => {
    const [flag = '', value] = name.replace('!', '').split(' ')
    if (value === undefined) return { flag: `--${flag}`, value: null, text }
    return {
      flag: `--${flag}`,
      value: flag === 'public-key' || FILES.test(value) ? 'file' : 'text',
      text,
    }
  })
}

/** Returns every position of the command table, starting with the root. */
export function placesOf(commands: readonly Definition[]): CursorPosition[] {
  const places = new Map<string, CursorPosition>()
  const placeAt = (path: string): CursorPosition => {
    const place = places.get(path) ?? { path, words: [], options: [], choices: [], files: false }
    places.set(path, place)
    return place
  }
  placeAt('').options.push(
    { flag: '--help', value: null, text: 'List all commands.' },
    { flag: '--version', value: null, text: 'Print the version.' },
  )
  for (const definition of commands) {
    const words = wordsOf(definition)
    for (const [at, word] of words.entries()) {
      const { words: existing } = placeAt(words.slice(0, at).join(' '))
      const isLast = at === words.length - 1
      if (!existing.some((each) => each.word === word))
        existing.push({ word, text: isLast ? definition.summary : `commands of ${word}` })
    }
    const place = placeAt(words.join(' '))
    place.options.push(...optionsOf(definition), ...EVERY)
    place.choices = definition.choices ?? []
    place.files = argumentsOf(definition).some((argument) => FILES.test(argument.slice(1, -1)))
  }
  placeAt('').words.push({ word: 'help', text: 'Print the help of a command.' })
  return [...places.values()]
}

/** Returns the options that take a value, each after the path of its command. */
const valued = (places: readonly CursorPosition[], kind: Value): string[] =>
  places.flatMap(({ path, options }) =>
    options.filter(({ value }) => value === kind).map(({ flag }) => `${path} ${flag}`),
  )

/** Quotes one word for a shell. Texts of the command table may contain any character. */
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
const patterns = (texts: readonly string[]): string => texts.map(quoted).join('|')
/** Returns a branch of `case`; empty if no text leads to it. */
const branch = (texts: readonly string[], body: string): string[] =>
  texts.length === 0 ? [] : [`    ${patterns(texts)}) ${body} ;;`]

/**
 * Advances the position by one word: `help` does not change it, and a word that the group does not
 * have leads to a position without completions.
 */
const walk = (places: readonly CursorPosition[]): string[] => [
  ...branch(['help'], ''),
  ...branch(pathsOf(places), 'place="$next"'),
  '    *) case "$place" in',
  ...branch(groupsOf(places), "place='?'").map((line) => `  ${line}`),
  '      esac ;;',
]
const pathsOf = (places: readonly CursorPosition[]): string[] =>
  places.map(({ path }) => path).filter((path) => path !== '')
const groupsOf = (places: readonly CursorPosition[]): string[] =>
  places.filter(({ words }) => words.length > 0).map(({ path }) => path)

/**
 * Returns the script for bash. It uses no associative arrays, because bash 3.2, the version of
 * macOS, has none.
 */
function bash(places: readonly CursorPosition[]): string[] {
  const offered = ({ words, choices }: CursorPosition): string =>
    [...words.map(({ word }) => word), ...choices].join(' ')
  return [
    '# Completion of the command "custody" for bash: source <(npx custody completion bash)',
    '_custody() {',
    '  local cur="${COMP_WORDS[COMP_CWORD]}" place="" before="" word next at',
    '  COMPREPLY=()',
    '  for ((at = 1; at < COMP_CWORD; at++)); do',
    '    word="${COMP_WORDS[at]}"',
    '    if [ -n "$before" ]; then before=""; continue; fi',
    '    case "$word" in -*)',
    '      case "$place $word" in',
    ...branch([...valued(places, 'file'), ...valued(places, 'text')], 'before="$place $word"').map(
      (line) => `  ${line}`,
    ),
    '      esac',
    '      continue ;;',
    '    esac',
    '    next="${place:+$place }$word"',
    '    case "$next" in',
    ...walk(places),
    '    esac',
    '  done',
    '  if [ -n "$before" ]; then',
    '    case "$before" in',
    ...branch(valued(places, 'file'), '_custody_files'),
    '    esac',
    '    return',
    '  fi',
    '  local words="" options="" files=""',
    '  case "$place" in',
    ...places.flatMap((place) =>
      branch(
        [place.path],
        [
          `words=${quoted(offered(place))}`,
          `options=${quoted(place.options.map(({ flag }) => flag).join(' '))}`,
          ...(place.files ? ['files=1'] : []),
        ].join('; '),
      ),
    ),
    '  esac',
    '  case "$cur" in',
    '    -*) COMPREPLY=($(compgen -W "$options" -- "$cur")) ;;',
    '    *)',
    '      COMPREPLY=($(compgen -W "$words" -- "$cur"))',
    '      if [ -n "$files" ]; then _custody_files; fi ;;',
    '  esac',
    '}',
    '_custody_files() {',
    "  local IFS=$'\\n'",
    '  compopt -o filenames 2>/dev/null',
    '  COMPREPLY=($(compgen -f -- "$cur"))',
    '}',
    'complete -F _custody custody',
  ]
}

function zsh(places: readonly CursorPosition[]): string[] {
  // Escapes colons, because a colon ends the word in arguments of _describe.
  const described = (entries: readonly { word: string; text: string }[]): string =>
    entries.map(({ word, text }) => quoted(`${word.replaceAll(':', '\\:')}:${text}`)).join(' ')
  return [
    '#compdef custody',
    '# Completion of the command "custody" for zsh, after compinit: source <(npx custody completion zsh)',
    '_custody() {',
    '  local place="" before="" word next files="" at',
    '  local -a offered options',
    '  for ((at = 2; at < CURRENT; at++)); do',
    '    word="${words[at]}"',
    '    if [[ -n "$before" ]]; then before=""; continue; fi',
    '    if [[ "$word" == -* ]]; then',
    '      case "$place $word" in',
    ...branch([...valued(places, 'file'), ...valued(places, 'text')], 'before="$place $word"').map(
      (line) => `  ${line}`,
    ),
    '      esac',
    '      continue',
    '    fi',
    '    next="${place:+$place }$word"',
    '    case "$next" in',
    ...walk(places),
    '    esac',
    '  done',
    '  if [[ -n "$before" ]]; then',
    '    case "$before" in',
    ...branch(valued(places, 'file'), '_files'),
    "    *) _message 'value' ;;",
    '    esac',
    '    return',
    '  fi',
    '  case "$place" in',
    ...places.flatMap((place) =>
      branch(
        [place.path],
        [
          `offered=(${described([...place.words, ...place.choices.map((word) => ({ word, text: word }))])})`,
          `options=(${described(place.options.map(({ flag, text }) => ({ word: flag, text })))})`,
          ...(place.files ? ['files=1'] : []),
        ].join('; '),
      ),
    ),
    '  esac',
    '  if [[ "${words[CURRENT]}" == -* ]]; then',
    "    _describe -o 'option' options",
    '  else',
    "    (( ${#offered} )) && _describe 'command' offered",
    '    [[ -n "$files" ]] && _files',
    '    return 0',
    '  fi',
    '}',
    'if [[ "${funcstack[1]}" == _custody ]]; then _custody "$@"; else compdef _custody custody; fi',
  ]
}

/**
 * Quotes a word for fish: within single quotes, quotes and backslashes are escaped by a backslash.
 */
const fishQuoted = (text: string): string =>
  `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`

function fish(places: readonly CursorPosition[]): string[] {
  const at = (path: string) => `-n ${fishQuoted(`__custody_at ${fishQuoted(path)}`)}`
  const offer = ({ path, words, options, choices, files }: CursorPosition): string[] => [
    ...words.map(
      ({ word, text }) =>
        `complete -c custody ${at(path)} -a ${fishQuoted(word)} -d ${fishQuoted(text)}`,
    ),
    ...choices.map((word) => `complete -c custody ${at(path)} -a ${fishQuoted(word)}`),
    ...options.map(({ flag, value, text }) => {
      const takes = value === null ? '' : value === 'file' ? ' -r -F' : ' -x'
      return `complete -c custody ${at(path)} -l ${fishQuoted(flag.slice(2))}${takes} -d ${fishQuoted(text)}`
    }),
    ...(files ? [`complete -c custody ${at(path)} -F`] : []),
  ]
  return [
    '# Completion of the command "custody" for fish: npx custody completion fish | source',
    `set -g __custody_places ${pathsOf(places).map(fishQuoted).join(' ')}`,
    `set -g __custody_groups ${groupsOf(places).map(fishQuoted).join(' ')}`,
    `set -g __custody_valued ${[...valued(places, 'file'), ...valued(places, 'text')].map(fishQuoted).join(' ')}`,
    'function __custody_at',
    "  set -l place ''",
    '  set -l skip 0',
    '  set -l typed (commandline -opc)',
    '  for word in $typed[2..-1]',
    '    if test $skip -eq 1',
    '      set skip 0',
    "    else if string match -q -- '-*' $word",
    '      contains -- "$place $word" $__custody_valued; and set skip 1',
    '    else',
    '      set -l next (string trim -- "$place $word")',
    '      if contains -- $next $__custody_places',
    '        set place $next',
    '      else if test $next != help; and contains -- "$place" $__custody_groups',
    "        set place '?'",
    '      end',
    '    end',
    '  end',
    '  test "$place" = "$argv[1]"',
    'end',
    'complete -c custody -e',
    'complete -c custody -f',
    ...places.flatMap(offer),
  ]
}

const SHELLS: Record<string, (places: readonly CursorPosition[]) => string[]> = { bash, zsh, fish }

/**
 * Returns the completion script of a shell, line by line.
 * @throws OperatorError for an unsupported shell
 */
export function completionScript(shell: string, commands: readonly Definition[]): string[] {
  const script = Object.hasOwn(SHELLS, shell) ? SHELLS[shell] : undefined
  if (!script)
    throw new OperatorError(
      `SHELL: must be ${Object.keys(SHELLS).join(', ')}; "${shell}" is not known`,
    )
  return script(placesOf(commands))
}

export const completionRun =
  (commands: readonly Definition[]): Run =>
  ({ words: [shell = ''] }) => {
    const lines = completionScript(shell, commands)
    return { result: { shell, script: lines.join('\n') }, text: lines }
  }
