import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseSync } from 'vite'
import { ROOT } from './documents.ts'

/**
 * A call that writes a log line. `message` is the literal text with … for each inserted value, or
 * null if the message is a variable.
 */
export interface LogCall {
  file: string
  level: string
  message: string | null
}

/** A node of the syntax tree, of which only some fields are read. */
interface Node {
  type: string
  [field: string]: unknown
}

const LEVELS = new Set(['fatal', 'error', 'warn', 'info'])

const isNode = (value: unknown): value is Node => typeof (value as Node | null)?.type === 'string'
const nameOf = (node: Node): string =>
  node.type === 'MemberExpression' ? nameOf(node['property'] as Node) : String(node['name'] ?? '')

/**
 * Returns the literal text of an expression: of strings, templates and their concatenations, also
 * in the arguments of a function.
 */
function wordsOf(node: Node | undefined): string | null {
  if (node?.type === 'Literal' && typeof node['value'] === 'string') return node['value']
  if (node?.type === 'TemplateLiteral')
    return (node['quasis'] as { value: { cooked: string } }[])
      .map(({ value }) => value.cooked)
      .join('…')
  if (node?.type === 'CallExpression') return wordsOf((node['arguments'] as Node[])[0])
  if (node?.type !== 'BinaryExpression' || node['operator'] !== '+') return null
  const [left, right] = [wordsOf(node['left'] as Node), wordsOf(node['right'] as Node)]
  return left === null || right === null ? null : left + right
}

/**
 * Matches `services.log.warn(…)`, `this.#log.warn(…)` and `log.warn(…)` of the platform, and
 * `log('warn', …)` and `this.#log('warn', …)` of the signer.
 */
function callOf(node: Node): { level: string; message: Node | undefined } | null {
  if (node.type !== 'CallExpression') return null
  const [callee, args] = [node['callee'] as Node, node['arguments'] as Node[]]
  if (callee.type === 'MemberExpression' && LEVELS.has(nameOf(callee))) {
    return nameOf(callee['object'] as Node) === 'log'
      ? { level: nameOf(callee), message: args[args.length > 1 ? 1 : 0] }
      : null
  }
  const level = args[0]?.['value']
  return nameOf(callee) === 'log' && typeof level === 'string' ? { level, message: args[1] } : null
}

function callsBelow(
  value: unknown,
  onCall: (call: NonNullable<ReturnType<typeof callOf>>) => void,
): void {
  if (Array.isArray(value)) for (const each of value) callsBelow(each, onCall)
  if (!isNode(value)) return
  const call = callOf(value)
  if (call) onCall(call)
  for (const child of Object.values(value)) callsBelow(child, onCall)
}

/** Returns every call in a package's sources that writes a log line at `info` or above. */
export function logCalls(name: 'platform' | 'signer'): LogCall[] {
  const folder = join(ROOT, 'packages', name, 'src')
  return globSync('**/*.ts', { cwd: folder })
    .sort()
    .flatMap((file) => {
      const calls: LogCall[] = []
      const { program, errors } = parseSync(file, readFileSync(join(folder, file), 'utf8'))
      if (errors.length > 0) throw new Error(`${file}: ${errors[0]?.message ?? ''}`)
      callsBelow(program, ({ level, message }) =>
        calls.push({ file, level, message: wordsOf(message) }),
      )
      return calls
    })
}
