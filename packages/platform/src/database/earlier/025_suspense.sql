-- A deposit that no wallet holds is booked, and not confirmed to anybody before it is credited.
update transactions set status = 'pending', confirmed_at = null where kind = 'DEPOSIT' and state = 'SUSPENSE';
