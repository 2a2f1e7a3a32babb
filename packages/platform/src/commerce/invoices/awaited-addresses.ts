import type { Database } from '../../core/database/pool.ts'

/** Returns addresses of open invoices on a network, those that expire first at the front. */
export const awaitedAddresses = async (
  { database }: { database: Database },
  network: string,
  most: number,
): Promise<string[]> =>
  (
    await database.query<{ address: string }>(
      `select o.address from invoices i join invoice_offers o on o.workspace_id = i.workspace_id
         and o.invoice_id = i.id
       where i.status in ('Pending', 'Processing') and o.network = $1 and o.address is not null
       order by i.expires_at limit $2`,
      [network, most],
    )
  ).map(({ address }) => address)
