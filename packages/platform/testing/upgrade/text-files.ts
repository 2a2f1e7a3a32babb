import { createPrivateKey, type JsonWebKey } from 'node:crypto'
import { globSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

/**
 * A data directory as text, so that a review can read every part of a fixture. A SQLite file is
 * stored as its statements (`NAME.sqlite.sql`), private keys stand together in one {@link
 * FixtureKeys}, and everything else is text already.
 */
export interface FixtureKeys {
  /** Why these private keys may be read by anyone. */
  note: string
  /** RSA key that all callers sign with. */
  caller: JsonWebKey
  /**
   * Files by their path below the data directory: a private key as JWK, which the product stores as
   * PEM, or raw bytes in hexadecimal.
   */
  files: Record<string, JsonWebKey | string>
}

const NOTE =
  'Generated for this fixture. These keys sign on local test chains only and hold nothing.'
const SQL = '.sql'
/** TLS keys and their certificates: the fixture is restored with new ones. */
const IS_TLS = /(?:^|\/)tls\.(?:key|crt)$/

const pemOf = (key: JsonWebKey): string =>
  createPrivateKey({ key, format: 'jwk' }).export({ type: 'pkcs8', format: 'pem' }) as string
const jwkOf = (pem: string): JsonWebKey => createPrivateKey(pem).export({ format: 'jwk' })
const isText = (content: Buffer): boolean =>
  content.equals(Buffer.from(content.toString('utf8'))) && !content.includes(0)

function literal(value: unknown): string {
  if (value === null) return 'null'
  if (typeof value === 'number' || typeof value === 'bigint') return String(value)
  if (typeof value === 'string') return `'${value.replaceAll("'", "''")}'`
  throw new Error(`a SQLite value of type ${typeof value} has no text form here`)
}

/**
 * Returns the statements that create a SQLite database: tables and rows first, then triggers and
 * indices.
 */
function dumpSqlite(file: string): string {
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    const schema = database
      .prepare('select type, name, sql from sqlite_master where sql is not null order by rowid')
      .all() as { type: string; name: string; sql: string }[]
    const statements: string[] = []
    for (const { name, sql } of schema.filter(({ type }) => type === 'table')) {
      statements.push(`${sql};`)
      for (const row of database.prepare(`select * from ${name} order by 1`).all()) {
        statements.push(
          `insert into ${name} values (${Object.values(row).map(literal).join(', ')});`,
        )
      }
    }
    const { user_version: version } = database.prepare('pragma user_version').get() as {
      user_version: number
    }
    return [
      ...statements,
      ...schema.filter(({ type }) => type !== 'table').map(({ sql }) => `${sql};`),
      `pragma user_version = ${version};`,
      '',
    ].join('\n')
  } finally {
    database.close()
  }
}

function filesOf(folder: string): string[] {
  return globSync('**/*', { cwd: folder })
    .filter((name) => statSync(join(folder, name)).isFile())
    .sort()
}

/**
 * Writes the data directory `home` as text into `to`, without its TLS keys.
 * @param callerKey PEM of the callers' RSA key
 */
export function writeAsText(home: string, callerKey: string, to: string): void {
  const keys: FixtureKeys = { note: NOTE, caller: jwkOf(callerKey), files: {} }
  for (const name of filesOf(home)) {
    if (IS_TLS.test(name)) continue
    const content = readFileSync(join(home, name))
    const text = content.toString('utf8')
    const [suffix, body] = name.endsWith('.sqlite')
      ? [SQL, dumpSqlite(join(home, name))]
      : ['', text]
    if (text.includes('PRIVATE KEY')) keys.files[name] = jwkOf(text)
    else if (suffix === '' && !isText(content)) keys.files[name] = content.toString('hex')
    else {
      mkdirSync(dirname(join(to, 'home', name)), { recursive: true })
      writeFileSync(join(to, 'home', name + suffix), body)
    }
  }
  writeFileSync(join(to, 'fixture-keys.json'), `${JSON.stringify(keys, null, 2)}\n`)
}

const readKeys = (folder: string) =>
  JSON.parse(readFileSync(join(folder, 'fixture-keys.json'), 'utf8')) as FixtureKeys

/** Returns the PEM of the RSA key that the fixture's callers sign with. */
export const callerKeyOf = (folder: string): string => pemOf(readKeys(folder).caller)

/**
 * Restores into `home` the data directory that {@link writeAsText} wrote into `folder`, readable by
 * the owner only.
 */
export function restoreFromText(folder: string, home: string): void {
  const write = (name: string, content: string | Buffer) => {
    mkdirSync(dirname(join(home, name)), { recursive: true, mode: 0o700 })
    writeFileSync(join(home, name), content, { mode: 0o600 })
  }
  for (const name of filesOf(join(folder, 'home'))) {
    const text = readFileSync(join(folder, 'home', name), 'utf8')
    if (!name.endsWith(`.sqlite${SQL}`)) {
      write(name, text)
      continue
    }
    const target = name.slice(0, -SQL.length)
    write(target, '')
    const database = new DatabaseSync(join(home, target))
    database.exec('pragma journal_mode = wal')
    database.exec(`begin;\n${text}\ncommit;`)
    database.close()
  }
  for (const [name, key] of Object.entries(readKeys(folder).files)) {
    write(name, typeof key === 'string' ? Buffer.from(key, 'hex') : pemOf(key))
  }
}
