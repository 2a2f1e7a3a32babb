import type { Database } from '../../core/database/pool.ts'

interface Services {
  database: Database
}

/**
 * Returns the origins whose pages may embed an invoice's checkout in a frame, as configured by its
 * workspace; null if the invoice does not exist.
 */
export async function frameAncestors(
  services: Services,
  invoice: string,
): Promise<string[] | null> {
  const row = await services.database.one<{ origins: string[] }>(
    `select coalesce(s.allowed_origins, '[]') origins from invoices i
      left join invoice_settings s on s.workspace_id = i.workspace_id
     where lower(i.id) = $1`,
    [invoice],
  )
  return row?.origins ?? null
}
