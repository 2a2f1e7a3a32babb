/**
 * Names that a backup may contain, as paths relative to its folder. All others are rejected,
 * because PostgreSQL reads settings, signal files and links from its data folder and executes the
 * commands in them.
 */

/**
 * Settings of the database server, which earlier versions copied. They are never restored, because
 * the platform writes its own.
 */
const SETTINGS = new Set(
  ['postgresql.conf', 'postgresql.auto.conf', 'pg_hba.conf', 'pg_ident.conf'].map(
    (name) => `database/${name}`,
  ),
)

const RELATION = '(?:t\\d+_)?\\d+(?:_(?:fsm|vm|init))?(?:\\.\\d+)?'
/** Regular files of a PostgreSQL data folder without tablespaces, as copied by `takeEmbedded`. */
const DATABASE_FILES = new RegExp(
  `^database/(?:${[
    'PG_VERSION',
    'backup_label',
    `base/\\d+/(?:PG_VERSION|pg_filenode\\.map|${RELATION})`,
    `global/(?:pg_control|pg_filenode\\.map|${RELATION})`,
    'pg_wal/(?:[0-9A-F]{24}|[0-9A-F]{8}\\.history)',
    'pg_(?:xact|commit_ts)/[0-9A-F]{4,15}',
    'pg_multixact/(?:members|offsets)/[0-9A-F]{4,15}',
    'pg_twophase/[0-9A-F]{8,16}',
    'pg_logical/(?:replorigin_checkpoint|mappings/map-[0-9a-f-]+(?:_[0-9A-F]+)?|snapshots/[0-9A-F-]+\\.snap)',
  ].join('|')})$`,
)
const DATABASE_FOLDERS = new RegExp(
  `^(?:${[
    'base(?:/\\d+)?',
    'global',
    'pg_(?:xact|commit_ts|twophase|stat|tblspc)',
    'pg_multixact(?:/(?:members|offsets))?',
    'pg_logical(?:/(?:mappings|snapshots))?',
    'pg_wal(?:/(?:archive_status|summaries))?',
    'pg_replslot',
    'pg_dynshmem',
    'pg_notify',
    'pg_serial',
    'pg_snapshots',
    'pg_stat_tmp',
    'pg_subtrans',
  ].join('|')})$`,
)
const REQUIRED = ['PG_VERSION', 'backup_label', 'global/pg_control'].map(
  (name) => `database/${name}`,
)

export interface Listed {
  version: 1 | 2
  database: { form: 'files' | 'dump' }
  secrets: boolean
  nodes: readonly { node: number }[]
  folders: readonly string[]
  files: readonly { path: string }[]
}

/**
 * Returns whether a file is a setting of the database that an earlier version copied; it is
 * ignored.
 */
export const isSetting = (path: string): boolean => SETTINGS.has(path)

function reasonAgainst(
  path: string,
  { version, database: { form }, secrets, nodes }: Listed,
): string | null {
  if (
    path.startsWith('/') ||
    path.split('/').some((part) => part === '..' || part === '.' || part === '')
  )
    return 'is outside the backup'
  if (path === 'secrets.sealed') return secrets ? null : 'is not listed in "secrets"'
  const [, node] = /^nodes\/node-([123])\.json$/.exec(path) ?? []
  if (node !== undefined)
    return nodes.some((each) => String(each.node) === node) ? null : 'is not listed in "nodes"'
  if (form === 'dump') return path === 'database/dump' ? null : 'is not part of a backup'
  if (isSetting(path))
    return version === 1 ? null : 'is a database setting, which this platform writes itself'
  if (/^database\/(?:[a-z_]+\.signal|recovery\.conf)$/.test(path))
    return 'would change how the database recovers'
  if (/^database\/(?:pg_tblspc\/|tablespace_map)/.test(path))
    return 'belongs to a tablespace: tablespaces are not supported'
  return DATABASE_FILES.test(path)
    ? null
    : 'is not part of a PostgreSQL data folder that can be restored'
}

/** Returns a sentence for each invalid name in a manifest. */
export function wrongNames(listed: Listed): string[] {
  const wrong: string[] = []
  const [files, folders] = [new Set<string>(), new Set<string>()]
  for (const { path } of listed.files) {
    const reason = files.has(path) ? 'is listed twice' : reasonAgainst(path, listed)
    if (reason !== null) wrong.push(`${path} ${reason}`)
    files.add(path)
  }
  for (const folder of listed.folders) {
    const isAllowed = listed.database.form === 'files' && DATABASE_FOLDERS.test(folder)
    if (!isAllowed)
      wrong.push(`${folder} is not a folder of a PostgreSQL data folder that can be restored`)
    else if (folders.has(folder)) wrong.push(`${folder} is listed twice`)
    folders.add(folder)
  }
  const required = listed.database.form === 'dump' ? ['database/dump'] : REQUIRED
  for (const path of [
    ...required,
    ...(listed.secrets ? ['secrets.sealed'] : []),
    ...listed.nodes.map(({ node }) => `nodes/node-${node}.json`),
  ])
    if (!files.has(path)) wrong.push(`${path} is not listed`)
  return wrong
}

const LABEL = new RegExp(
  `^(?:${[
    'START WAL LOCATION: [0-9A-F]+/[0-9A-F]+ \\(file [0-9A-F]{24}\\)',
    'CHECKPOINT LOCATION: [0-9A-F]+/[0-9A-F]+',
    'BACKUP METHOD: streamed',
    'BACKUP FROM: primary',
    'START TIME: [0-9A-Za-z :+-]{1,60}',
    'LABEL: custody',
    'START TIMELINE: [0-9]{1,10}',
  ].join('|')})$`,
)

/**
 * Checks the content of a `backup_label`.
 * @throws Error if it contains a line that `takeEmbedded` does not write
 */
export function checkLabel(text: string): void {
  const wrong = text
    .split('\n')
    .find((line, at, lines) => !LABEL.test(line) && !(line === '' && at === lines.length - 1))
  if (wrong !== undefined) {
    throw new Error(
      `database/backup_label contains a line that a backup of this platform does not have: ${JSON.stringify(wrong)}`,
    )
  }
}
