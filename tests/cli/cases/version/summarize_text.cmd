version >/dev/null; cd $data/snapshots && "$tarn" summarize tiny.pickle.gz --label host=n7 --name a/rank12,pp=3.pickle
